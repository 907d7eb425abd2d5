/** One request that may be repeated: whose it is, its key, and what it asked. */
export interface Repeatable {
  readonly tenant: string | undefined;
  /** the credential: keys of two callers have nothing to do with each other */
  readonly owner: string;
  readonly key: string;
  /** of method, path and body */
  readonly hash: string;
}

export interface Reply {
  readonly status: number;
  readonly body: string;
}

export type Begun =
  /** the first of its kind: do it, then `finish` or `abandon` */
  | { readonly kind: "first" }
  /** it was done: this was the answer */
  | { readonly kind: "known"; readonly reply: Reply }
  /** somebody is doing it now */
  | { readonly kind: "busy" }
  /** the key was used for another request */
  | { readonly kind: "other" };

/** Answers to requests with an `Idempotency-Key`, kept for a day. One that was begun and never finished is forgotten. */
export interface Replies {
  begin(request: Repeatable): Promise<Begun>;
  finish(request: Repeatable, reply: Reply): Promise<void>;
  abandon(request: Repeatable): Promise<void>;
}
