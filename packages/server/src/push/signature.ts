import { createHmac, timingSafeEqual } from "node:crypto";

/** Signatures of Standard Webhooks (https://www.standardwebhooks.com): symmetric, v1. */

const PREFIX = "whsec_";
/** bytes, as the specification has it */
const SHORTEST = 24;
const LONGEST = 64;

/** The key inside a secret as people keep it: `whsec_` and base64. */
export function secretBytes(secret: string): Buffer {
  const text = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret;
  const bytes = /^[A-Za-z0-9+/]+={0,2}$/.test(text) ? Buffer.from(text, "base64") : Buffer.alloc(0);
  if (bytes.length < SHORTEST || bytes.length > LONGEST) throw new Error(`a secret is ${PREFIX} and ${SHORTEST} to ${LONGEST} bytes in base64`);
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
    const given = Buffer.from(one);
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}
