import { invalid } from "../../core/option.js";
import { keyBytes, type MasterKey, masterKey } from "../../runtime/cipher.js";

type Given = string | Uint8Array;

/** Master keys, newest first, or a function that answers them as they are now. */
export type MasterKeySource = readonly Given[] | (() => readonly Given[] | Promise<readonly Given[]>);

/** The master keys of this process: the first one wraps, all of them unwrap. Never held by the store, never printed. */
export class Masters {
  private constructor(
    private readonly source: () => readonly Given[] | Promise<readonly Given[]>,
    private last: readonly MasterKey[],
  ) {}

  /** Reads them once: what is no master key is refused now, and not with the first job. */
  static async of(given: MasterKeySource): Promise<Masters> {
    const source = typeof given === "function" ? given : () => given;
    return new Masters(source, keysOf(await source()));
  }

  /** A file that is being written may hold no key for a moment, and no caller is to blame for it: then the last ones hold. */
  async all(): Promise<readonly MasterKey[]> {
    const now: unknown = await this.source();
    if (firstUnfit(now) === undefined) this.last = keysOf(now);
    return this.last;
  }

  async newest(): Promise<MasterKey> {
    return (await this.all())[0] as MasterKey;
  }
}

function keysOf(given: unknown): readonly MasterKey[] {
  const unfit = firstUnfit(given);
  if (unfit === "no list") throw invalid("encryption.keys", "it is not a list of one key or more, the newest first");
  // What was given may be a key with a slip in it: it is repeated nowhere.
  if (unfit !== undefined) throw invalid(`encryption.keys[${unfit}]`, "it is not 32 bytes, as base64 or hex: openssl rand -base64 32 makes one");
  return (given as readonly Given[]).map((one) => masterKey(keyBytes(one) as Uint8Array));
}

/** The place of the first one that is no master key. */
function firstUnfit(given: unknown): number | "no list" | undefined {
  if (!Array.isArray(given) || given.length === 0) return "no list";
  const place = given.findIndex((one: unknown) => !isMasterKey(one));
  return place === -1 ? undefined : place;
}

/** Whether it can be a master key: 32 bytes, as they are or as base64 or hex. */
export function isMasterKey(given: unknown): given is string | Uint8Array {
  return (typeof given === "string" || given instanceof Uint8Array) && keyBytes(given) !== undefined;
}
