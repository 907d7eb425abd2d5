import { createCipheriv, createDecipheriv, createHmac, createSecretKey, hkdfSync, type KeyObject } from "node:crypto";
import type { RandomBytes } from "../../core/jobs/id.js";

const ALGORITHM = "aes-256-gcm";
const KEY_BYTES = 32;
const SALT_BYTES = 16;
const IV_BYTES = 12;
const TAG_BYTES = 16;
/** A key is used for fewer than 2^32 random vectors, so that two of the same stay out of the question. */
const MAX_USES = 2 ** 31;

/** A master key, and the name it is known by, which tells nothing of it. */
export interface MasterKey {
  readonly id: string;
  readonly key: KeyObject;
}

export function masterKey(bytes: Uint8Array): MasterKey {
  const id = createHmac("sha256", bytes).update("pawl master key").digest("hex").slice(0, 16);
  return { id, key: createSecretKey(bytes) };
}

/** 32 bytes, as they are or as base64 or hex; undefined for what is none. */
export function keyBytes(material: string | Uint8Array): Uint8Array | undefined {
  if (typeof material !== "string") return material instanceof Uint8Array && material.length === KEY_BYTES ? material : undefined;
  const text = material.trim();
  if (/^[0-9a-f]{64}$/i.test(text)) return Buffer.from(text, "hex");
  if (!/^[\w+/-]{43}=?$/.test(text)) return undefined;
  const bytes = Buffer.from(text, "base64");
  return bytes.length === KEY_BYTES ? bytes : undefined;
}

export function newDataKey(random: RandomBytes): Uint8Array {
  return random(KEY_BYTES);
}

/** A data key under a master key; `about` is what it is for, and must be the same to unwrap it. */
export function wrap(master: MasterKey, dataKey: Uint8Array, about: string, random: RandomBytes): string {
  return encrypt(master.key, random(IV_BYTES), about, dataKey).toString("base64url");
}

/** undefined: it is not what was wrapped, or not by this key */
export function unwrap(master: MasterKey, wrapped: string, about: string): Uint8Array | undefined {
  return decrypt(master.key, Buffer.from(wrapped, "base64url"), about);
}

/**
 * What a process encrypts with. A data key itself encrypts nothing: every process draws a salt and derives a key of its own
 * from it, so that none needs to know how often the others have used theirs.
 */
export class EncryptingKey {
  #key: KeyObject | undefined;
  #salt: Uint8Array = new Uint8Array(0);
  #uses = 0;

  constructor(
    private readonly dataKey: Uint8Array,
    private readonly random: RandomBytes,
  ) {}

  /** base64url: salt, vector, ciphertext, tag */
  encrypt(text: string, about: string): string {
    if (this.#key === undefined || this.#uses >= MAX_USES) this.#draw();
    this.#uses++;
    const encrypted = encrypt(this.#key as KeyObject, this.random(IV_BYTES), about, Buffer.from(text, "utf8"));
    return Buffer.concat([this.#salt, encrypted]).toString("base64url");
  }

  #draw(): void {
    this.#salt = this.random(SALT_BYTES);
    this.#key = derived(this.dataKey, this.#salt);
    this.#uses = 0;
  }
}

/** Processes come and go, each with a salt of its own: so many of the derived keys are remembered. */
const MAX_DERIVED_KEYS = 64;

/** Opens what any process encrypted with one data key. */
export class DecryptingKey {
  readonly #derived = new Map<string, KeyObject>();

  constructor(private readonly dataKey: Uint8Array) {}

  /** undefined: it was not encrypted with this key for what `about` says, or was altered since */
  decrypt(box: string, about: string): string | undefined {
    const bytes = Buffer.from(box, "base64url");
    if (bytes.length < SALT_BYTES + IV_BYTES + TAG_BYTES) return undefined;
    return decrypt(this.#keyFor(bytes.subarray(0, SALT_BYTES)), bytes.subarray(SALT_BYTES), about)?.toString("utf8");
  }

  #keyFor(salt: Uint8Array): KeyObject {
    const name = Buffer.from(salt).toString("latin1");
    const existing = this.#derived.get(name);
    if (existing !== undefined) return existing;
    const key = derived(this.dataKey, salt);
    if (this.#derived.size >= MAX_DERIVED_KEYS) this.#derived.delete(this.#derived.keys().next().value as string);
    this.#derived.set(name, key);
    return key;
  }
}

/** Digests under a data key: the same text has the same one, and nobody without the key can tell of which text. */
export class DigestKey {
  readonly #key: KeyObject;

  constructor(dataKey: Uint8Array) {
    this.#key = derived(dataKey, new Uint8Array(0), "pawl digest key");
  }

  /** in hex */
  digest(text: string): string {
    return createHmac("sha256", this.#key).update(text, "utf8").digest("hex");
  }
}

function derived(dataKey: Uint8Array, salt: Uint8Array, use = "pawl encryption key"): KeyObject {
  return createSecretKey(Buffer.from(hkdfSync("sha256", dataKey, salt, use, KEY_BYTES)));
}

function encrypt(key: KeyObject, iv: Uint8Array, about: string, content: Uint8Array): Buffer {
  const cipher = createCipheriv(ALGORITHM, key, iv);
  cipher.setAAD(Buffer.from(about, "utf8"));
  return Buffer.concat([iv, cipher.update(content), cipher.final(), cipher.getAuthTag()]);
}

function decrypt(key: KeyObject, bytes: Buffer, about: string): Buffer | undefined {
  if (bytes.length < IV_BYTES + TAG_BYTES) return undefined;
  const cipher = createDecipheriv(ALGORITHM, key, bytes.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES });
  cipher.setAAD(Buffer.from(about, "utf8"));
  cipher.setAuthTag(bytes.subarray(bytes.length - TAG_BYTES));
  try {
    return Buffer.concat([cipher.update(bytes.subarray(IV_BYTES, bytes.length - TAG_BYTES)), cipher.final()]);
  } catch {
    return undefined;
  }
}
