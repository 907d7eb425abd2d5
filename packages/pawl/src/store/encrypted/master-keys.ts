import { invalid } from "../../core/values/option.js";
import { keyBytes, type MasterKey, masterKey } from "../../runtime/io/cipher.js";

type RawMasterKey = string | Uint8Array;

/** Master keys, newest first, or a function that answers them as they are now. */
export type MasterKeySource = readonly RawMasterKey[] | (() => readonly RawMasterKey[] | Promise<readonly RawMasterKey[]>);

/** The master keys of this process: the first one wraps, all of them unwrap. Never held by the store, never printed. */
export class MasterKeys {
  private constructor(
    private readonly source: () => readonly RawMasterKey[] | Promise<readonly RawMasterKey[]>,
    private last: readonly MasterKey[],
  ) {}

  /** Reads them once: what is no master key is refused now, and not with the first job. */
  static async of(given: MasterKeySource): Promise<MasterKeys> {
    const source = typeof given === "function" ? given : () => given;
    return new MasterKeys(source, keysOf(await source()));
  }

  /** A file that is being written may hold no key for a moment, and no caller is to blame for it: then the last ones hold. */
  async all(): Promise<readonly MasterKey[]> {
    const now: unknown = await this.source();
    if (firstInvalid(now) === undefined) this.last = keysOf(now);
    return this.last;
  }

  async newest(): Promise<MasterKey> {
    return (await this.all())[0] as MasterKey;
  }
}

function keysOf(given: unknown): readonly MasterKey[] {
  const invalidIndex = firstInvalid(given);
  if (invalidIndex === "no list") throw invalid("encryption.masterKeys", "it is not a list of one key or more, the newest first");
  // What was given may be a key with a slip in it: it is repeated nowhere.
  if (invalidIndex !== undefined)
    throw invalid(`encryption.masterKeys[${invalidIndex}]`, "it is not 32 bytes, as base64 or hex: openssl rand -base64 32 makes one");
  return (given as readonly RawMasterKey[]).map((one) => masterKey(keyBytes(one) as Uint8Array));
}

/** The index of the first one that is no master key. */
function firstInvalid(given: unknown): number | "no list" | undefined {
  if (!Array.isArray(given) || given.length === 0) return "no list";
  const index = given.findIndex((one: unknown) => !isMasterKey(one));
  return index === -1 ? undefined : index;
}

/** Whether it can be a master key: 32 bytes, as they are or as base64 or hex. */
export function isMasterKey(given: unknown): given is string | Uint8Array {
  return (typeof given === "string" || given instanceof Uint8Array) && keyBytes(given) !== undefined;
}
