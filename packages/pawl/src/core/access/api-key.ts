import type { RandomBytes } from "../jobs/id.js";
import type { Grant, Identity } from "./roles.js";

/**
 * The text of an API key: `pawl_<env>_<id>_<secret><checksum>`. The prefix lets scanners of repositories find one that
 * leaked, `_` lets a double click select it whole, the id finds its row, and the checksum tells a mistyped or made-up
 * one without asking the store.
 */
export interface ApiKeyText {
  readonly env: string;
  readonly id: string;
  readonly secret: string;
}

const PREFIX = "pawl";
const ID_LENGTH = 16;
/** 43 digits of base 62 hold 256 bits */
const SECRET_LENGTH = 43;
const CHECKSUM_LENGTH = 6;
const ENV = /^[a-z][a-z0-9]{0,15}$/;
const FORM = new RegExp(
  `^${PREFIX}_([a-z][a-z0-9]{0,15})_([0-9A-Za-z]{${ID_LENGTH}})_([0-9A-Za-z]{${SECRET_LENGTH}})([0-9A-Za-z]{${CHECKSUM_LENGTH}})$`,
);
const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

export function isEnv(text: string): boolean {
  return ENV.test(text);
}

export function newApiKey(env: string, random: RandomBytes, id: string = digits(ID_LENGTH, random)): ApiKeyText {
  return { env, id, secret: digits(SECRET_LENGTH, random) };
}

export function apiKeyText({ env, id, secret }: ApiKeyText): string {
  const body = `${PREFIX}_${env}_${id}_${secret}`;
  return body + checksum(body);
}

/** undefined: it is no key, or it was mistyped. */
export function parseApiKey(text: string): ApiKeyText | undefined {
  const [, env, id, secret, sum] = FORM.exec(text) ?? [];
  if (env === undefined || id === undefined || secret === undefined) return undefined;
  // The checksum is no secret: comparing it as a text tells nothing.
  return checksum(text.slice(0, -CHECKSUM_LENGTH)) === sum ? { env, id, secret } : undefined;
}

export interface ApiKeyFacts {
  readonly id: string;
  readonly name: string;
  /** undefined: it is not bound to a tenant */
  readonly tenant: string | undefined;
  readonly grants: readonly Grant[];
  readonly createdAt: number;
  readonly expiresAt?: number;
  readonly revokedAt?: number;
  /** to the minute or so */
  readonly lastUsedAt?: number;
}

/** Who a good key stands for. */
export interface Credential extends Identity {
  readonly key: string;
  readonly name: string;
}

export type Refusal = "malformed" | "env" | "unknown" | "secret" | "expired" | "revoked";

/** For the one who asked they are all the same; the audit log may tell them apart. */
export type Verified =
  | { readonly ok: true; readonly credential: Credential; readonly expiresAt?: number }
  | { readonly ok: false; readonly why: Refusal; readonly key?: string; readonly tenant?: string };

/** Why a key is not good at a moment, whatever its secret. */
export function refusalOf({ revokedAt, expiresAt }: ApiKeyFacts, now: number): Refusal | undefined {
  if (revokedAt !== undefined) return "revoked";
  return expiresAt !== undefined && expiresAt <= now ? "expired" : undefined;
}

/** Unbiased: bytes that would favour the first digits are drawn again. */
function digits(count: number, random: RandomBytes): string {
  let text = "";
  while (text.length < count) {
    for (const byte of random(2 * count)) {
      if (byte < 248 && text.length < count) text += ALPHABET[byte % 62];
    }
  }
  return text;
}

function checksum(text: string): string {
  let rest = crc32(text);
  let sum = "";
  for (let index = 0; index < CHECKSUM_LENGTH; index++) {
    sum = ALPHABET[rest % 62] + sum;
    rest = Math.floor(rest / 62);
  }
  return sum;
}

const CRC = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});

/** of ASCII */
export function crc32(text: string): number {
  let crc = 0xffffffff;
  for (let i = 0; i < text.length; i++) crc = (crc >>> 8) ^ (CRC[(crc ^ text.charCodeAt(i)) & 0xff] as number);
  return (crc ^ 0xffffffff) >>> 0;
}
