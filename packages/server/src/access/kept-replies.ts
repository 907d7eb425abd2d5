import type { Replies as Kept, Turn } from "pawl";
import type { Repeatable, Replies } from "../http/replies.js";

/** A key is shown once, also to one who asks twice: an answer that holds one is kept without it. */
const API_KEY = /pawl_[a-z][a-z0-9]{0,15}_[0-9A-Za-z]{16}_[0-9A-Za-z]{49}/g;

/** Answers to requests with an `Idempotency-Key`, in the store: the same for every process of the service. */
export function keptReplies(kept: Kept): Replies {
  const turns = new WeakMap<Repeatable, Turn & { readonly kind: "begun" }>();
  return {
    async begin(request) {
      const { tenant, owner, key, hash } = request;
      const turn = await kept.begin({ tenant, credential: owner, key, hash });
      switch (turn.kind) {
        case "begun":
          turns.set(request, turn);
          return { kind: "first" };
        case "in_flight":
          return { kind: "busy" };
        case "different":
          return { kind: "other" };
        case "replied":
          return { kind: "known", reply: { status: turn.reply.status, body: turn.reply.body } };
      }
    },
    async finish(request, reply) {
      await turns.get(request)?.finish({ status: reply.status, body: reply.body.replaceAll(API_KEY, "(shown once)"), headers: {} });
    },
    async abandon(request) {
      await turns.get(request)?.abandon();
    },
  };
}
