import { createHash } from "node:crypto";
import { pawlError, type Replies, type Reply } from "pawl";
import type { Principal } from "./access.js";

const KEY = /^[\x21-\x7e]{1,255}$/;

export function checkKey(given: unknown): string | undefined {
  if (given === undefined) return undefined;
  if (typeof given === "string" && KEY.test(given)) return given;
  throw pawlError("field_invalid", { field: "Idempotency-Key", reason: "must be 1 to 255 visible characters", pointer: "Idempotency-Key" });
}

/** Whose key it is: those of two callers have nothing to do with each other. */
function ownerOf({ tenant, name }: Principal): string {
  return `${tenant ?? "*"}/${name}`;
}

/** The request id of what an enqueue makes: were the service killed before it kept its answer, it would still be one job. */
export function requestIdOf(principal: Principal, key: string): string {
  return `http.${createHash("sha256")
    .update(`${ownerOf(principal)}\n${key}`)
    .digest("base64url")}`;
}

export interface Once {
  readonly principal: Principal;
  readonly key: string;
  readonly method: string;
  readonly url: string;
  readonly body: unknown;
}

type Answer = Pick<Reply, "status" | "body">;

/**
 * Does a request once, however often it is sent with its key. The first answer is kept; `act` throws
 * what is worth trying again: that the service failed, or had no room.
 */
export async function once(replies: Replies, { principal, key, ...asked }: Once, act: () => Promise<Answer>): Promise<Answer & { replayed?: true }> {
  const turn = await replies.begin({ tenant: principal.tenant, credential: ownerOf(principal), key, hash: hashOf(asked) });
  switch (turn.kind) {
    case "replied":
      return { status: turn.reply.status, body: turn.reply.body, replayed: true };
    case "in_flight":
      throw pawlError("idempotency_in_flight");
    case "different":
      throw pawlError("idempotency_key_reused");
    case "begun":
      break;
  }
  const reply = await act().catch(async (error: unknown) => {
    await turn.abandon().catch(() => {});
    throw error;
  });
  // It is done, whether or not that can be written down: to say otherwise would have it done again.
  await turn.finish({ ...reply, body: reply.body.replaceAll(SHOWN_ONCE, "(shown once)"), headers: {} }).catch(() => {});
  return reply;
}

/** A key or a secret is shown once, also to one who asks twice: an answer that holds one is kept without it. */
const SHOWN_ONCE = /pawl_[a-z][a-z0-9]{0,15}_[0-9A-Za-z]{16}_[0-9A-Za-z]{49}|whsec_[0-9A-Za-z+/]{43}=/g;

function hashOf({ method, url, body }: Omit<Once, "principal" | "key">): string {
  return createHash("sha256")
    .update(JSON.stringify([method, url, body]))
    .digest("hex");
}
