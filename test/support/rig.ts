import { Readable } from "node:stream";
import { type OpenOptions, open, type Pawl } from "pawl";
import { audited } from "../../packages/server/src/cli/audited.js";
import type { Io, Sink } from "../../packages/server/src/cli/output.js";
import { run } from "../../packages/server/src/cli/program.js";

export interface Ran {
  readonly exit: number;
  readonly out: string;
  readonly err: string;
  /** what it answered, with `--json` */
  readonly json: never;
}

export interface Terms {
  /** whether it speaks to a terminal */
  readonly terminal?: boolean;
  /** what it reads; at a terminal, what somebody types */
  readonly input?: string;
  readonly env?: Io["env"];
  readonly signal?: AbortSignal;
}

/** A pawl in memory, and command lines carried out on it. */
export class Rig implements AsyncDisposable {
  private constructor(readonly pawl: Pawl) {}

  static async start(options: OpenOptions = {}): Promise<Rig> {
    return new Rig(await open("memory:", options));
  }

  /** `pawl.do("jobs", "list")`. */
  async do(...argv: readonly string[]): Promise<Ran> {
    return this.under({}, ...argv);
  }

  async under({ terminal = false, input, env = {}, signal = new AbortController().signal }: Terms, ...argv: readonly string[]): Promise<Ran> {
    const [stdout, out] = sink(terminal);
    const [stderr, err] = sink(terminal);
    const stdin = Object.assign(Readable.from(input === undefined ? [] : [input]), { isTTY: terminal && input !== undefined });
    const exit = await run(argv, { io: { stdin, stdout, stderr, env }, signal: () => signal, openTarget: async () => audited(kept(this.pawl)) });
    const text = out.join("");
    return {
      exit,
      out: text,
      err: err.join(""),
      get json() {
        return JSON.parse(text) as never;
      },
    };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.pawl.close();
  }
}

function sink(isTTY: boolean): [Sink, string[]] {
  const written: string[] = [];
  return [{ write: (text) => written.push(text), isTTY, columns: 100, rows: 30 }, written];
}

/** The same pawl, that a command cannot close. */
function kept(pawl: Pawl): Pawl {
  return new Proxy(pawl, {
    get(of, name) {
      if (name === "close") return async () => {};
      const value: unknown = Reflect.get(of, name);
      return typeof value === "function" ? value.bind(of) : value;
    },
  });
}
