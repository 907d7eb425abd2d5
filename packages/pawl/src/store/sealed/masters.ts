import { invalid } from "../../core/option.js";
import { keyBytes, type MasterKey, masterKey } from "../../runtime/cipher.js";

type Given = string | Uint8Array;

/** Master keys, newest first, or a function that answers them as they are now. */
export type MasterKeySource = readonly Given[] | (() => readonly Given[] | Promise<readonly Given[]>);

/** The master keys of this process: the first one wraps, all of them unwrap. Never held by the store, never printed. */
export class Masters {
  readonly #read: () => Promise<readonly MasterKey[]>;

  constructor(source: MasterKeySource) {
    if (typeof source === "function") this.#read = async () => keysOf(await source());
    else {
      const fixed = keysOf(source);
      this.#read = async () => fixed;
    }
  }

  all(): Promise<readonly MasterKey[]> {
    return this.#read();
  }

  async newest(): Promise<MasterKey> {
    return (await this.#read())[0] as MasterKey;
  }
}

function keysOf(given: unknown): readonly MasterKey[] {
  if (!Array.isArray(given) || given.length === 0) throw invalid("encryption.keys", "it is not a list of one key or more, the newest first");
  return given.map((one, place) => {
    const bytes = keyBytes(one as Given);
    // What was given may be a key with a slip in it: it is repeated nowhere.
    if (bytes === undefined) throw invalid(`encryption.keys[${place}]`, "it is not 32 bytes, as base64 or hex: openssl rand -base64 32 makes one");
    return masterKey(bytes);
  });
}
