import { secretBytes, verify } from "./signature.js";

export interface ReceiverOptions {
  /** as the sender has it: `whsec_…`; of two either is taken, while one takes the place of the other */
  readonly secret: string | readonly string[];
  /** seconds that a delivery may be old, or ahead of this clock; 300 unless set */
  readonly tolerance?: number;
  /** ms since 1970 */
  readonly now?: () => number;
}

export interface DeliveryHeaders {
  readonly "webhook-id"?: string | readonly string[] | undefined;
  readonly "webhook-timestamp"?: string | readonly string[] | undefined;
  readonly "webhook-signature"?: string | readonly string[] | undefined;
}

/** `unsigned`: by nobody who has the secret, or not now; `replayed`: this very delivery was here before. Answer both with 401. */
export type Received = { readonly ok: true; readonly id: string } | { readonly ok: false; readonly why: "unsigned" | "replayed" };

const DEFAULT_TOLERANCE_S = 300;
const MAX_REMEMBERED_DELIVERIES = 100_000;

/**
 * What a target does with what is pushed to it, before it believes it. The body is the bytes as they came: parsed and
 * printed again they may be others. A job that is tried again comes with the same id and another time, and is no replay: what
 * was done for that id is for the target to remember.
 */
export function receiver({ secret, tolerance = DEFAULT_TOLERANCE_S, now = Date.now }: ReceiverOptions): {
  receive(headers: DeliveryHeaders, body: string | Uint8Array): Received;
} {
  const secrets = (typeof secret === "string" ? [secret] : secret).map(secretBytes);
  /** until when, in s, by delivery; the oldest first */
  const seen = new Map<string, number>();
  return {
    receive(headers, body) {
      const signed = {
        id: textOf(headers["webhook-id"]),
        timestamp: textOf(headers["webhook-timestamp"]),
        signature: textOf(headers["webhook-signature"]),
      };
      const text = typeof body === "string" ? body : Buffer.from(body).toString("utf8");
      const at = Math.floor(now() / 1_000);
      if (!secrets.some((one) => verify(one, signed, text, at, tolerance))) return { ok: false, why: "unsigned" };
      for (const [oldest, until] of seen) {
        if (until >= at && seen.size < MAX_REMEMBERED_DELIVERIES) break;
        seen.delete(oldest);
      }
      const delivery = `${signed.timestamp} ${signed.id}`;
      if (seen.has(delivery)) return { ok: false, why: "replayed" };
      seen.set(delivery, at + 2 * tolerance);
      return { ok: true, id: signed.id };
    },
  };
}

function textOf(header: string | readonly string[] | undefined): string {
  return typeof header === "string" ? header : "";
}
