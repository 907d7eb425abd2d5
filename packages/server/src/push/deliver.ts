import { type IncomingMessage, request as plainRequest } from "node:http";
import { request as secureRequest } from "node:https";
import { isIP } from "node:net";
import { checkTarget, hostOf, type TargetRules } from "./check-target.js";
import { isSafe, NO_NETWORKS, safeLookup, systemResolve, UnsafeTarget } from "./safe-address.js";
import { signature } from "./signature.js";

export interface Delivery {
  readonly target: string;
  readonly secrets: readonly Buffer[];
  /** the same for every attempt at a job: receivers tell repetitions by it */
  readonly id: string;
  readonly body: string;
  readonly signal: AbortSignal;
}

export interface DeliveryAnswer {
  readonly status: number;
  /** ms, of `Retry-After` */
  readonly retryAfter: number | undefined;
  /** JSON, if it was that */
  readonly output: unknown;
}

/** bytes of an answer that are read */
const MAX_ANSWER_BYTES = 65_536;
const MAX_RETRY_AFTER_MS = 86_400_000;

/**
 * One request to a target: signed, never redirected, and to no address that was not looked at. Connections are not kept,
 * so that each one is looked at.
 */
export async function deliver({ target, secrets, id, body, signal }: Delivery, rules: TargetRules = {}): Promise<DeliveryAnswer> {
  const url = checkTarget(target, rules);
  const timestamp = Math.floor(Date.now() / 1000);
  const headers = {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    "user-agent": "pawl",
    "webhook-id": id,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": signature(secrets, id, timestamp, body),
  };
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const send = url.protocol === "https:" ? secureRequest : plainRequest;
    // An address needs no lookup, and was checked as it stands.
    const lookup = isIP(hostOf(url)) === 0 ? { lookup: safeLookup(rules.resolve ?? systemResolve, rules.allowed ?? NO_NETWORKS) } : {};
    const sent = send(url, { method: "POST", headers, agent: false, signal, ...lookup }, resolve);
    // Looked at once more where it counts: nothing has been sent before this.
    sent.on("socket", (socket) =>
      socket.once("connect", () => {
        if (!isSafe(socket.remoteAddress ?? "", rules.allowed))
          sent.destroy(new UnsafeTarget(`${url.hostname} led to an address that jobs may not be pushed to`));
      }),
    );
    sent.on("error", reject);
    sent.end(body);
  });
  const text = await read(response);
  return {
    status: response.statusCode ?? 0,
    retryAfter: retryAfterOf(response.headers["retry-after"]),
    output: jsonOf(text, response.headers["content-type"]),
  };
}

async function read(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_ANSWER_BYTES) {
      response.destroy();
      throw new Error(`the target answered with more than ${MAX_ANSWER_BYTES} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Seconds, or a date. */
export function retryAfterOf(header: string | undefined, now = Date.now()): number | undefined {
  if (header === undefined) return undefined;
  const ms = /^\d{1,9}$/.test(header.trim()) ? Number(header) * 1000 : Date.parse(header) - now;
  return Number.isNaN(ms) ? undefined : Math.min(MAX_RETRY_AFTER_MS, Math.max(0, ms));
}

function jsonOf(text: string, type: string | undefined): unknown {
  if (text === "" || !/^application\/([\w.+-]+\+)?json\b/i.test(type ?? "")) return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
