import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { extname, resolve } from "node:path";
import { createInterface } from "node:readline";
import type { Duplex, Readable } from "node:stream";
import type { Commands } from "../child/commands.ts";
import type { Child } from "../contract/child.js";
import type { Aim, StoreLocation } from "../contract/system.js";
import type { NodeRuntime } from "./node.js";
import type { RunnableSystem } from "./turns.js";

const BENCH = resolve(import.meta.dirname, "..");
const START_TIMEOUT_MS = 30_000;
/** of what a child printed: for the message if it fails */
const KEPT_OUTPUT = 4_000;

interface Reply {
  readonly ready?: true;
  readonly id?: number;
  readonly answer?: unknown;
  readonly error?: string;
  readonly progress?: number;
}

const COMMANDS = [
  "prepare",
  "enqueueMany",
  "enqueueEach",
  "enqueuePaced",
  "enqueueFor",
  "enqueueStream",
  "putSchedules",
  "work",
  "ran",
  "report",
  "watched",
  "pause",
  "resume",
  "forget",
  "usage",
] as const satisfies readonly (keyof Commands)[];

export interface Started extends Child {
  /** at once, whatever it is doing */
  kill(): Promise<void>;
}

/** Starts one process of a system on a place, and waits until it is connected. */
export async function startChild(system: RunnableSystem, location: StoreLocation, aim: Aim, node: NodeRuntime): Promise<Started> {
  const { file, args } = commandOf(system, location, aim, node);
  const cwd = system.bench ?? BENCH;
  const env = { ...process.env, NODE_ENV: "production", TSX_TSCONFIG_PATH: resolve(cwd, "tsconfig.json") };
  // A group of its own: some start processes themselves, and those would keep its pipes open after it was killed.
  const process_ = spawn(file, args, { cwd, env, stdio: ["ignore", "pipe", "pipe", "pipe"], detached: true });
  const line = new ChildConnection(system.name, process_);
  await line.ready;

  const commands = Object.fromEntries(COMMANDS.map((command) => [command, (argument?: unknown) => line.ask(command, argument)])) as Pick<
    Commands,
    (typeof COMMANDS)[number]
  >;
  return {
    ...commands,
    system,
    pid: process_.pid ?? 0,
    done: (count) => line.tell({ done: count }),
    onProgress: (listener) => line.onProgress(listener),
    async stop() {
      await line.ask("stop");
      await line.end(START_TIMEOUT_MS);
    },
    kill: () => line.end(0),
  };
}

function commandOf(system: RunnableSystem, location: StoreLocation, aim: Aim, node: NodeRuntime): { file: string; args: string[] } {
  const bench = system.bench ?? BENCH;
  const path = resolve(bench, "systems", system.file);
  const told = [JSON.stringify(location), aim];
  const language = extname(system.file);
  // Debian's own: its packages are for them, and not for others that may be first in the path.
  if (language === ".rb") return { file: "/usr/bin/ruby", args: [path, ...told] };
  if (language === ".py") return { file: "/usr/bin/python3", args: ["-B", path, ...told] };
  return { file: node.path, args: [...node.flags, resolve(bench, "child/main.ts"), system.file, ...told] };
}

/** The talk with one child: questions by number, answers, and what it says unasked. */
class ChildConnection {
  readonly ready: Promise<void>;
  readonly #process: ChildProcess;
  readonly #socket: Duplex;
  readonly #open = new Map<number, { resolve(answer: unknown): void; reject(error: Error): void }>();
  readonly #listeners: ((count: number) => void)[] = [];
  #lastMessage = "";
  #questions = 0;
  #gone = false;

  constructor(
    private readonly name: string,
    child: ChildProcess,
  ) {
    this.#process = child;
    this.#socket = child.stdio[3] as Duplex;
    this.#socket.on("error", () => {}); // its end is told by its exit
    for (const output of [child.stdout, child.stderr] as Readable[]) {
      output.setEncoding("utf8").on("data", (text: string) => {
        this.#lastMessage = (this.#lastMessage + text).slice(-KEPT_OUTPUT);
      });
    }
    this.ready = new Promise((resolve, reject) => this.#open.set(0, { resolve: () => resolve(), reject }));
    child.once("error", (error) => this.#lost(error.message));
    child.once("close", (code, signal) => this.#lost(`ended with ${code ?? signal}`));
    createInterface({ input: this.#socket }).on("line", (text) => this.#hear(JSON.parse(text) as Reply));
  }

  ask(command: string, argument?: unknown): Promise<unknown> {
    if (this.#gone) return Promise.reject(new Error(`${this.name} is gone`));
    const id = ++this.#questions;
    this.tell({ id, command, argument });
    return new Promise((resolve, reject) => this.#open.set(id, { resolve, reject }));
  }

  tell(message: object): void {
    if (!this.#gone) this.#socket.write(`${JSON.stringify(message)}\n`);
  }

  onProgress(listener: (count: number) => void): void {
    this.#listeners.push(listener);
  }

  /** Its socket ends and with it the child; one that does not end in time is killed. */
  async end(patienceMs: number): Promise<void> {
    if (this.#gone) return;
    const closed = once(this.#process, "close");
    this.#socket.end();
    if (patienceMs === 0) this.#kill();
    const timer = setTimeout(() => this.#kill(), patienceMs);
    await closed;
    clearTimeout(timer);
  }

  #kill(): void {
    try {
      process.kill(-(this.#process.pid as number), "SIGKILL");
    } catch {
      // Nobody is left of them.
    }
  }

  #hear({ ready, id, answer, error, progress }: Reply): void {
    if (progress !== undefined) for (const listener of this.#listeners) listener(progress);
    const number = ready === true ? 0 : id;
    if (number === undefined) return;
    const question = this.#open.get(number);
    this.#open.delete(number);
    if (error === undefined) question?.resolve(answer);
    else question?.reject(new Error(`${this.name}: ${error}\n${this.#lastMessage}`));
  }

  #lost(why: string): void {
    this.#gone = true;
    for (const { reject } of this.#open.values()) reject(new Error(`${this.name} ${why}\n${this.#lastMessage}`));
    this.#open.clear();
  }
}
