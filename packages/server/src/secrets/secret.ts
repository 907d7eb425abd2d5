import { execFile } from "node:child_process";
import { readFile, stat } from "node:fs/promises";
import { inspect, promisify } from "node:util";
import { nameOf, type Reference } from "./reference.js";

const run = promisify(execFile);

/** How long an answer is believed before its place is looked at again, in ms. A variable of our own process never changes. */
const MAX_AGE_MS: Readonly<Record<Reference["kind"], number>> = { file: 1_000, env: Number.POSITIVE_INFINITY, command: 60_000 };
const COMMAND_TIMEOUT_MS = 10_000;
/** bytes; more is no secret but somebody's disk */
const MAX_SECRET_BYTES = 65_536;

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * A secret, read where it is kept and read again when that may have changed. If it cannot be read again, the last value
 * holds: a manager that is away for a minute must not take the service with it.
 */
export class Secret {
  #value: string | undefined;
  #version = "";
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<string> | undefined;

  constructor(
    readonly reference: Reference,
    private readonly env: Environment,
    private readonly redactor: Redactor,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** Its value as of now. Fails if it was never had. */
  read(): Promise<string> {
    if (this.#value !== undefined && this.now() - this.#readAt < MAX_AGE_MS[this.reference.kind]) return Promise.resolve(this.#value);
    this.#reading ??= this.#reread().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #reread(): Promise<string> {
    try {
      const version = await fileVersion(this.reference);
      if (this.#value === undefined || version === undefined || version !== this.#version) {
        const value = await contentOf(this.reference, this.env);
        this.redactor.add(value);
        this.#value = value;
        this.#version = version ?? "";
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
async function fileVersion(reference: Reference): Promise<string | undefined> {
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
      if (text.length > MAX_SECRET_BYTES) throw new Error(`${nameOf(reference)} is larger than ${MAX_SECRET_BYTES} bytes`);
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
        return (await run(program, args, { timeout: COMMAND_TIMEOUT_MS, maxBuffer: MAX_SECRET_BYTES, windowsHide: true })).stdout;
      } catch (error) {
        // Its message holds the whole command line, and what it printed before it failed may be the secret.
        const { code, killed } = error as { code?: unknown; killed?: boolean };
        throw new Error(`${nameOf(reference)} ${killed ? `did not answer within ${COMMAND_TIMEOUT_MS / 1_000} s` : `failed with ${code}`}`);
      }
    }
  }
}

/** Files and commands end with a line break that nobody means. */
function withoutLineEnd(text: string): string {
  return text.replace(/\r?\n$/, "");
}

/** A shorter one would be found in every other word. */
const MIN_REDACTED_CHARACTERS = 4;

/** Knows the secrets that were read, and takes them out of what is to be printed. */
export class Redactor {
  readonly #values = new Set<string>();

  add(value: string): void {
    if (value.length < MIN_REDACTED_CHARACTERS) return;
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
