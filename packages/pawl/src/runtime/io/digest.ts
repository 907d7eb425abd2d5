import { createHash, createHmac, timingSafeEqual } from "node:crypto";

/** in hex */
export function sha256(text: string): string {
  return createHash("sha256").update(text, "utf8").digest("hex");
}

/** in hex */
export function hmacSha256(secret: string | Uint8Array, text: string): string {
  return createHmac("sha256", secret).update(text, "utf8").digest("hex");
}

/** Whether two digests are the same, in a time that tells nothing of where they differ. */
export function sameDigest(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}
