import type { Clock } from "../../runtime/time/clock.js";
import type { ServerAway, StartupWait } from "../../runtime/time/retry-until-up.js";

/** How to talk to Postgres. In a file of its own: these types are public, and those of drivers are not. */
export interface PostgresOptions {
  readonly migrate?: boolean;
  /** of a folder */
  readonly engine?: "native" | "pglite";
  readonly schema?: string;
  /** a direct URL for LISTEN, where `url` leads to a pooler */
  readonly listenUrl?: string;
  /** in place of the URLs' own: asked for with every connection, so that it may change */
  readonly password?: () => string | Promise<string>;
  /** named prepared statements; "auto" stops using them where a pooler has none */
  readonly prepare?: "auto" | false;
  /** connections at most */
  readonly connections?: number;
  /** ms after which an unanswered statement is given up */
  readonly statementTimeout?: number;
  /** how long to wait for a server that is not up yet */
  readonly startupWait?: StartupWait;
  /** hears what keeps it waiting: at once, and every five seconds */
  readonly onWaiting?: (what: OpenWait) => void;
  /** the clock of tests */
  readonly now?: () => number;
  readonly clock?: Clock;
}

/** The reason why `open` waits: a server that cannot be reached, or rows that a migration moves. */
export type OpenWait = ServerAway | { readonly for: "migration"; readonly migration: string; readonly moved: number };
