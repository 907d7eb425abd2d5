import { createHash } from "node:crypto";
import { pawlError } from "pawl";
import type { Principal } from "./access.js";
import type { Repeatable, Replies, Reply } from "./replies.js";

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

/**
 * Does a request once, however often it is sent with its key. The first answer is kept; `act` throws
 * what is worth trying again: that the service failed, or had no room.
 */
export async function once(replies: Replies, { principal, key, ...asked }: Once, act: () => Promise<Reply>): Promise<Reply & { replayed?: true }> {
  const request = { tenant: principal.tenant, owner: ownerOf(principal), key, hash: hashOf(asked) };
  const begun = await replies.begin(request);
  switch (begun.kind) {
    case "known":
      return { ...begun.reply, replayed: true };
    case "busy":
      throw pawlError("idempotency_in_flight");
    case "other":
      throw pawlError("idempotency_key_reused");
    case "first":
      break;
  }
  const reply = await orAbandon(replies, request, act);
  // It is done, whether or not that can be written down: to say otherwise would have it done again.
  await replies.finish(request, reply).catch(() => {});
  return reply;
}

async function orAbandon(replies: Replies, request: Repeatable, act: () => Promise<Reply>): Promise<Reply> {
  try {
    return await act();
  } catch (error) {
    await replies.abandon(request).catch(() => {});
    throw error;
  }
}

function hashOf({ method, url, body }: Omit<Once, "principal" | "key">): string {
  return createHash("sha256")
    .update(JSON.stringify([method, url, body]))
    .digest("hex");
}
