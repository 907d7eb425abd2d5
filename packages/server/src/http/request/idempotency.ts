import { createHash } from "node:crypto";
import { pawlError, type Replies, type Reply } from "pawl/service";
import type { Principal } from "../access/principal.js";

const KEY_SYNTAX = /^[\x21-\x7e]{1,255}$/;

export function checkKey(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value === "string" && KEY_SYNTAX.test(value)) return value;
  throw pawlError("field_invalid", { field: "Idempotency-Key", reason: "must be 1 to 255 visible characters", pointer: "Idempotency-Key" });
}

/** Whose key it is: those of two callers have nothing to do with each other. */
function ownerOf({ tenant, name }: Principal): string {
  return `${tenant ?? "*"}/${name}`;
}

/** The idempotency key of what an enqueue makes: were the service killed before it kept its answer, it would still be one job. */
export function idempotencyKeyOf(principal: Principal, key: string): string {
  return `http.${createHash("sha256")
    .update(`${ownerOf(principal)}\n${key}`)
    .digest("base64url")}`;
}

export interface IdempotentRequest {
  readonly principal: Principal;
  readonly key: string;
  readonly method: string;
  readonly url: string;
  readonly body: unknown;
}

type ReplyContent = Pick<Reply, "status" | "body">;

/**
 * Does a request once, however often it is sent with its key. The first answer is kept; `act` throws
 * what is worth trying again: that the service failed, or had no room.
 */
export async function handleOnce(
  replies: Replies,
  { principal, key, ...request }: IdempotentRequest,
  act: () => Promise<ReplyContent>,
): Promise<ReplyContent & { replayed?: true }> {
  const begun = await replies.begin({ tenant: principal.tenant, credential: ownerOf(principal), key, hash: hashOf(request) });
  switch (begun.kind) {
    case "replied":
      return { status: begun.reply.status, body: begun.reply.body, replayed: true };
    case "in_flight":
      throw pawlError("idempotency_in_flight");
    case "different":
      throw pawlError("idempotency_key_reused", { idempotencyKey: key });
    case "begun":
      break;
  }
  const reply = await act().catch(async (error: unknown) => {
    await begun.abandon().catch(() => {});
    throw error;
  });
  // It is done, whether or not that can be written down: to say otherwise would have it done again.
  await begun.finish({ ...reply, body: reply.body.replaceAll(SECRETS_IN_REPLY, "(shown once)"), headers: {} }).catch(() => {});
  return reply;
}

/** A key or a secret is shown once, also to one who asks twice: an answer that holds one is kept without it. */
const SECRETS_IN_REPLY = /pawl_[a-z][a-z0-9]{0,15}_[0-9A-Za-z]{16}_[0-9A-Za-z]{49}|whsec_[0-9A-Za-z+/]{43}=/g;

function hashOf({ method, url, body }: Omit<IdempotentRequest, "principal" | "key">): string {
  return createHash("sha256")
    .update(JSON.stringify([method, url, body]))
    .digest("hex");
}
