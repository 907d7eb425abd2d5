import type { MessagePort } from "node:worker_threads";

/**
 * What goes between PGlite's thread and whoever has a port to it. PGlite is one connection: requests are served in
 * turn, and from `begin` to `commit` or `rollback` only those of the same port that say they are `inside`.
 */
export type Request =
  | { readonly kind: "query"; readonly text: string; readonly values: readonly unknown[]; readonly inside?: boolean }
  /** several statements without parameters */
  | { readonly kind: "script"; readonly text: string }
  | { readonly kind: "begin" | "commit" | "rollback" }
  | { readonly kind: "listen" | "unlisten"; readonly channel: string }
  | { readonly kind: "close" };

export type Rows = readonly Record<string, unknown>[];

export interface PortRequest {
  readonly id: number;
  readonly request: Request;
}

export type ThreadMessage =
  | { readonly kind: "answer"; readonly id: number; readonly answer: Answer }
  | { readonly kind: "error"; readonly id: number; readonly error: ErrorFields }
  | { readonly kind: "notification"; readonly channel: string; readonly payload: string };

/** `command` is what was done: COMMIT answers ROLLBACK if a statement before it had failed. */
export interface Answer {
  readonly rows: Rows;
  readonly command: string;
}

/** An error as the server tells it: the fields that `pg` has too, `code` (the SQLSTATE) among them. */
export type ErrorFields = { readonly message: string } & Readonly<Record<string, string>>;

/** The data the thread is started with. */
export interface PgliteThreadData {
  /** of PGlite itself */
  readonly file: string;
  /** undefined: it is in memory */
  readonly folder: string | undefined;
}

/** To the thread itself: another port to serve. */
export interface Attach {
  readonly attach: MessagePort;
}

/** From the thread itself, once: whether the database is open. */
export type Opened = { readonly opened: true } | { readonly opened: false; readonly error: ErrorFields };
