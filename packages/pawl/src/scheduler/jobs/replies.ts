import { DEFAULTS } from "../../core/values/defaults.js";
import { newToken } from "../../runtime/process/identity.js";
import type { BeginReplyResult, Reply, ReplyRef } from "../../store/port/access/replies.js";
import type { Store } from "../../store/port/index.js";

/** One request with an idempotency key: whose it is, its key, and the hash of all that makes it the same request. */
export interface IdempotentRequest extends ReplyRef {
  readonly hash: string;
}

/** What came of asking for the right to carry a request out. Whoever has it must finish or abandon it. */
export type IdempotentRequestStart =
  | { readonly kind: "begun"; finish(reply: Reply): Promise<"kept" | "stale">; abandon(): Promise<void> }
  | Exclude<BeginReplyResult, { readonly kind: "begun" }>;

/** Answers to requests with an idempotency key, kept for a day, in every process the same. For services on top of Pawl. */
export interface Replies {
  begin(request: IdempotentRequest): Promise<IdempotentRequestStart>;
}

export function createReplies({ replies }: Store): Replies {
  const { keep, patience } = DEFAULTS.replies;
  return {
    async begin({ hash, ...ref }) {
      const token = newToken();
      const begun = await replies.begin(ref, { token, hash, patience });
      if (begun.kind !== "begun") return begun;
      return { kind: "begun", finish: (reply) => replies.finish(ref, { token, reply, keep }), abandon: () => replies.abandon(ref, token) };
    },
  };
}
