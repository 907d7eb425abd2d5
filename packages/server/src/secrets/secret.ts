import { execFile } from "node:child_process";
import { readFile, stat } from "node:fs/promises";
import { inspect, promisify } from "node:util";
import { nameOf, type Reference } from "./reference.js";

const run = promisify(execFile);

/** How long an answer is believed before its place is looked at again, in ms. A variable of our own process never changes. */
const BELIEVED: Readonly<Record<Reference["kind"], number>> = { file: 1_000, env: Number.POSITIVE_INFINITY, command: 60_000 };
const COMMAND_TIMEOUT = 10_000;
/** bytes; more is no secret but somebody's disk */
const LARGEST = 65_536;

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * A secret, read where it is kept and read again when that may have changed. If it cannot be read again, the last value
 * holds: a manager that is away for a minute must not take the service with it.
 */
export class Secret {
  #value: string | undefined;
  #mark = "";
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<string> | undefined;

  constructor(
    readonly reference: Reference,
    private readonly env: Environment,
    private readonly known: Redactor,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** Its value as of now. Fails if it was never had. */
  read(): Promise<string> {
    if (this.#value !== undefined && this.now() - this.#readAt < BELIEVED[this.reference.kind]) return Promise.resolve(this.#value);
    this.#reading ??= this.#look().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #look(): Promise<string> {
    try {
      const mark = await markOf(this.reference);
      if (this.#value === undefined || mark === undefined || mark !== this.#mark) {
        const value = await contentOf(this.reference, this.env);
        this.known.add(value);
        this.#value = value;
        this.#mark = mark ?? "";
      }
    } catch (error) {
      if (this.#value === undefined) throw error;
    }
    this.#readAt = this.now();
    return this.#value as string;
  }

  /** However it is printed, it is not told. */
  toString(): string {
    return `[secret ${nameOf(this.reference)}]`;
  }

  toJSON(): string {
    return this.toString();
  }

  [inspect.custom](): string {
    return this.toString();
  }
}

/** Changes when the file does; undefined where only reading it tells. */
async function markOf(reference: Reference): Promise<string | undefined> {
  if (reference.kind !== "file") return undefined;
  const { ino, mtimeMs, size } = await stat(reference.path);
  return `${ino} ${mtimeMs} ${size}`;
}

async function contentOf(reference: Reference, env: Environment): Promise<string> {
  const value = withoutLineEnd(await textOf(reference, env));
  if (value === "") throw new Error(`${nameOf(reference)} is empty`);
  return value;
}

async function textOf(reference: Reference, env: Environment): Promise<string> {
  switch (reference.kind) {
    case "file": {
      const text = await readFile(reference.path, "utf8");
      if (text.length > LARGEST) throw new Error(`${nameOf(reference)} is larger than ${LARGEST} bytes`);
      return text;
    }
    case "env": {
      const text = Object.hasOwn(env, reference.name) ? env[reference.name] : undefined;
      if (text === undefined) throw new Error(`there is no variable ${reference.name} in the environment`);
      return text;
    }
    case "command": {
      const [program = "", ...args] = reference.words;
      try {
        return (await run(program, args, { timeout: COMMAND_TIMEOUT, maxBuffer: LARGEST, windowsHide: true })).stdout;
      } catch (error) {
        // Its message holds the whole command line, and what it printed before it failed may be the secret.
        const { code, killed } = error as { code?: unknown; killed?: boolean };
        throw new Error(`${nameOf(reference)} ${killed ? `did not answer within ${COMMAND_TIMEOUT / 1_000} s` : `failed with ${code}`}`);
      }
    }
  }
}

/** Files and commands end with a line break that nobody means. */
function withoutLineEnd(text: string): string {
  return text.replace(/\r?\n$/, "");
}

/** A shorter one would be found in every other word. */
const SHORTEST = 4;

/** Knows the secrets that were read, and takes them out of what is to be printed. */
export class Redactor {
  readonly #values = new Set<string>();

  add(value: string): void {
    if (value.length < SHORTEST) return;
    this.#values.add(value);
    // As it stands in a URL.
    this.#values.add(encodeURIComponent(value));
  }

  clean(text: string): string {
    let cleaned = text;
    for (const value of this.#values) cleaned = cleaned.replaceAll(value, "[secret]");
    return cleaned;
  }
}
