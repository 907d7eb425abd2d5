import { createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";
import { open, readFile } from "node:fs/promises";
import type { Audit, AuditHead } from "pawl/service";
import { anchorLine, lineHash, readAnchors } from "./anchor.js";

/** ms between anchors: what happens in between could be cut off without a trace */
export const ANCHOR_INTERVAL_MS = 5 * 60_000;

export interface AnchorOptions {
  /** of lines, one per anchor; one process each */
  readonly file: string;
  /** PEM of an Ed25519 private key */
  readonly key: string;
  readonly every?: number;
  /** Hears what kept it from writing one; it tries again when the next is due. */
  readonly onError: (error: unknown) => void;
}

/** Reads the key of anchors; what is none is refused before anything is signed with it. */
export function anchorKey(pem: string): KeyObject {
  const key = createPrivateKey(pem);
  if (key.asymmetricKeyType !== "ed25519") throw new Error(`the key is of type ${key.asymmetricKeyType}, not ed25519`);
  return key;
}

/** Writes an anchor at the start, every five minutes, and at the end. */
export class AnchorWriter {
  readonly #key: KeyObject;
  readonly #written = new Map<string | undefined, number>();
  #last: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(
    private readonly audit: Pick<Audit, "heads">,
    private readonly options: AnchorOptions,
    private readonly now: () => Date = () => new Date(),
  ) {
    this.#key = anchorKey(options.key);
  }

  /** The first one must succeed: a place that cannot be written to, or a file of another key, is found at once. */
  async start(): Promise<void> {
    await this.write();
    this.#timer = setInterval(() => void this.write().catch(this.options.onError), this.options.every ?? ANCHOR_INTERVAL_MS);
    this.#timer.unref();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.write().catch(this.options.onError);
  }

  /** One after the other: each holds the hash of the one before. */
  write(): Promise<void> {
    const written = this.#writing.then(() => this.#append());
    this.#writing = written.catch(() => {});
    return written;
  }

  async #append(): Promise<void> {
    this.#last ??= await this.#resume();
    const heads = await this.audit.heads();
    const changed = heads.filter(({ tenant, seq }) => seq > 0 && this.#written.get(tenant) !== seq);
    const line = anchorLine({ at: this.now().toISOString(), heads: changed.map(headOf), prev: this.#last }, this.#key);
    const file = await open(this.options.file, "a", 0o640);
    try {
      // Before it too: what a crash left of a line must not spoil this one.
      await file.write((await file.stat()).size === 0 ? `${line}\n` : `\n${line}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    for (const { tenant, seq } of changed) this.#written.set(tenant, seq);
    this.#last = lineHash(line);
  }

  async #resume(): Promise<string> {
    const text = await readFile(this.options.file, "utf8").catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return "";
      throw error;
    });
    const { last, brokenAt, anchoredHeads } = readAnchors(text, createPublicKey(this.#key));
    if (brokenAt !== undefined) throw new Error(`${this.options.file} is not a file of anchors by this key, from line ${brokenAt} on`);
    for (const { tenant, seq } of anchoredHeads) this.#written.set(tenant, seq);
    return last;
  }
}

function headOf({ tenant, seq, hash }: AuditHead): readonly [string | null, number, string] {
  return [tenant ?? null, seq, hash];
}
