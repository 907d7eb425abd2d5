import { type ChildProcess, execFile, spawn } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { OpenOptions } from "../../../packages/pawl/src/index.js";
import type { WorkerOptions } from "../../../packages/pawl/src/worker.js";
import { eventually } from "../eventually.js";
import { transpiled } from "./transpiled.js";

export interface ProcessOptions {
  readonly url: string;
  /** the file handlers write to */
  readonly handlerLog: string;
  /** absent: no worker, only what `open` starts */
  readonly work?: WorkerOptions;
  /** enqueue without end, so many at a time */
  readonly produce?: { readonly task: string; readonly lanes: number };
  readonly open?: OpenOptions;
}

/** What a child tells: events of its bus, and that it is ready. */
export interface ProcessEvent {
  readonly name: string;
  readonly event: object;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

const TRANSPILE = fileURLToPath(new URL("./transpile.ts", import.meta.url));
let building: Promise<string> | undefined;
let script: string | undefined;

/**
 * Makes what child processes run, and answers where one of its files is, named as in the repository. In a process of its own: where the sources have
 * changed it takes seconds, on a busy machine half a minute, and in that time the tests beside this one would hear no
 * answer and run into time-outs.
 */
export async function builtFile(path: string): Promise<string> {
  building ??= build();
  return join(await building, path.replace(/\.ts$/, ".js"));
}

export function childScript(name: string): Promise<string> {
  return builtFile(`test/support/processes/${name}.ts`);
}

async function build(): Promise<string> {
  return transpiled() ?? (await promisify(execFile)(process.execPath, ["--import", "tsx", TRANSPILE])).stdout;
}

/** A worker in a process of its own. */
export class WorkerProcess {
  readonly events: (ProcessEvent & { readonly at: number })[] = [];
  readonly exited: Promise<Exit>;
  readonly #process: ChildProcess;
  #complaints = "";
  #exit: Exit | undefined;
  #thaw: ChildProcess | undefined;

  constructor(options: ProcessOptions, env: NodeJS.ProcessEnv = {}) {
    if (script === undefined) throw new Error("call WorkerProcess.prepare() first");
    this.#process = spawn(process.execPath, ["--enable-source-maps", script, JSON.stringify(options)], {
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      env: { ...process.env, ...env },
    });
    this.#process.stderr?.on("data", (chunk: Buffer) => {
      this.#complaints = (this.#complaints + chunk.toString()).slice(-4_000);
    });
    this.#process.on("message", (message) => this.events.push({ ...(message as ProcessEvent), at: performance.now() }));
    this.exited = new Promise((resolve) => {
      this.#process.once("exit", (code, signal) => {
        this.#exit = { code, signal };
        resolve(this.#exit);
      });
    });
  }

  /** Makes what the processes run. */
  static async prepare(): Promise<void> {
    script ??= await childScript("worker-child");
  }

  get pid(): number {
    return this.#process.pid as number;
  }

  get exit(): Exit | undefined {
    return this.#exit;
  }

  heard(name: string): readonly (ProcessEvent & { readonly at: number })[] {
    return this.events.filter((event) => event.name === name);
  }

  async ready(ms = 60_000): Promise<this> {
    await this.hears("ready", ms);
    return this;
  }

  /** Waits for an event; throws if the process ends before it comes. */
  hears(name: string, ms?: number): Promise<ProcessEvent> {
    const check = () => {
      const [first] = this.heard(name);
      if (first === undefined && this.#exit !== undefined) throw new Error(`${this.describe()} before ${name}`);
      return first;
    };
    return eventually(`${name} of process ${this.pid}`, check, ms);
  }

  describe(): string {
    const { code, signal } = this.#exit ?? {};
    return this.#exit === undefined ? `process ${this.pid} runs` : `process ${this.pid} ended with ${code ?? signal}: ${this.#complaints}`;
  }

  signal(name: NodeJS.Signals): void {
    this.#process.kill(name);
  }

  async kill(): Promise<void> {
    this.#process.kill("SIGKILL");
    this.#thaw?.stdin?.end();
    await this.exited;
  }

  /** SIGTERM, and waits for the end. */
  async stop(): Promise<Exit> {
    this.signal("SIGTERM");
    return this.exited;
  }

  /** SIGSTOP. Whatever becomes of this test, the process is thawed when its helper's pipe ends, and can then end. */
  freeze(): void {
    this.#thaw = spawn("sh", ["-c", `read _; kill -CONT ${this.pid}`], { stdio: ["pipe", "ignore", "ignore"], detached: true });
    this.signal("SIGSTOP");
  }

  async thaw(): Promise<void> {
    const helper = this.#thaw;
    this.#thaw = undefined;
    if (helper === undefined) return;
    helper.stdin?.end();
    await new Promise((resolve) => helper.once("exit", resolve));
  }
}
