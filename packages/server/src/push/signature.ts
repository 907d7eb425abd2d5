import { createHmac, timingSafeEqual } from "node:crypto";

/** Signatures of Standard Webhooks (https://www.standardwebhooks.com): symmetric, v1. */

const PREFIX = "whsec_";
/** bytes, as the specification has it */
const MIN_SECRET_BYTES = 24;
const MAX_SECRET_BYTES = 64;

/** The key inside a secret as people keep it: `whsec_` and base64. */
export function secretBytes(secret: string): Buffer {
  const text = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret;
  const bytes = /^[A-Za-z0-9+/]+={0,2}$/.test(text) ? Buffer.from(text, "base64") : Buffer.alloc(0);
  if (bytes.length < MIN_SECRET_BYTES || bytes.length > MAX_SECRET_BYTES)
    throw new Error(`a secret is ${PREFIX} and ${MIN_SECRET_BYTES} to ${MAX_SECRET_BYTES} bytes in base64`);
  return bytes;
}

/** One signature for each secret, so that a receiver can take the new one while the old one is still in use. */
export function signature(secrets: readonly Buffer[], id: string, timestamp: number, body: string): string {
  return secrets.map((secret) => `v1,${createHmac("sha256", secret).update(`${id}.${timestamp}.${body}`).digest("base64")}`).join(" ");
}

/** As a receiver checks it: any of the signatures, in constant time, and not older or newer than the tolerance (s). */
export function verify(
  secret: Buffer,
  headers: { readonly id: string; readonly timestamp: string; readonly signature: string },
  body: string,
  now: number,
  tolerance = 300,
): boolean {
  const timestamp = Number(headers.timestamp);
  if (!Number.isInteger(timestamp) || Math.abs(now - timestamp) > tolerance) return false;
  const expected = Buffer.from(signature([secret], headers.id, timestamp, body));
  return headers.signature.split(" ").some((one) => {
    const actual = Buffer.from(one);
    return actual.length === expected.length && timingSafeEqual(actual, expected);
  });
}
