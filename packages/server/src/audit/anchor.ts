import { createHash, type KeyObject, sign, verify } from "node:crypto";
import type { AnchoredHead } from "pawl/service";

/**
 * Where every chain of the audit log was at a moment, signed and written somewhere the database's owner cannot reach:
 * what tells an end that was cut off, or a chain that was written anew. Each line holds the hash of the one before, so
 * that none can be taken out of the middle.
 */
export interface Anchor {
  /** ISO 8601 */
  readonly at: string;
  /** tenant (null: the store as a whole), place and hash of the newest entry of each chain that moved since */
  readonly heads: readonly (readonly [tenant: string | null, seq: number, hash: string])[];
  readonly prev: string;
}

/** What the first line follows. */
export const FIRST_PREV_HASH = "0".repeat(64);

export function anchorLine(anchor: Anchor, key: KeyObject): string {
  return JSON.stringify({ ...anchor, signature: sign(null, Buffer.from(signedText(anchor)), key).toString("base64") });
}

function signedText({ at, heads, prev }: Anchor): string {
  return JSON.stringify(["pawl audit anchor 1", at, heads, prev]);
}

export function lineHash(line: string): string {
  return createHash("sha256").update(line).digest("hex");
}

export interface AnchorReport {
  readonly anchoredHeads: readonly AnchoredHead[];
  readonly lines: number;
  /** of the newest line */
  readonly at: string | undefined;
  /** hash of the newest line, which the next one holds */
  readonly last: string;
  /** the first line, from 1, that is not signed with the key, or does not follow the one before */
  readonly brokenAt?: number;
}

/**
 * Reads anchors. A line that is no anchor is left out, since a crash may cut one short; an anchor that was tampered with
 * is missed by the line after it, or by its signature.
 */
export function readAnchors(text: string, key: KeyObject): AnchorReport {
  const anchoredHeads: AnchoredHead[] = [];
  let [lines, last, at] = [0, FIRST_PREV_HASH, undefined as string | undefined];
  let brokenAt: number | undefined;
  for (const [index, line] of text.split("\n").entries()) {
    const anchor = anchorOf(line);
    if (anchor === undefined) continue;
    if (anchor.prev !== last || !isSigned(anchor, key)) brokenAt ??= index + 1;
    lines += 1;
    last = lineHash(line);
    at = anchor.at;
    if (brokenAt === undefined) anchoredHeads.push(...anchor.heads.map(([tenant, seq, hash]) => ({ tenant: tenant ?? undefined, seq, hash })));
  }
  return { anchoredHeads, lines, at, last, ...(brokenAt === undefined ? {} : { brokenAt }) };
}

type SignedAnchor = Anchor & { readonly signature: string };

function anchorOf(line: string): SignedAnchor | undefined {
  try {
    const { at, heads, prev, signature } = JSON.parse(line) as Partial<SignedAnchor>;
    const isHead = (head: unknown) => Array.isArray(head) && head.length === 3 && Number.isSafeInteger(head[1]) && typeof head[2] === "string";
    if (typeof at !== "string" || typeof prev !== "string" || typeof signature !== "string" || !Array.isArray(heads) || !heads.every(isHead))
      return undefined;
    return { at, heads, prev, signature };
  } catch {
    return undefined;
  }
}

function isSigned(anchor: SignedAnchor, key: KeyObject): boolean {
  return verify(null, Buffer.from(signedText(anchor)), key, Buffer.from(anchor.signature, "base64"));
}
