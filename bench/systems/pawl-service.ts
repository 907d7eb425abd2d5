import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

const COMMAND = resolve(import.meta.dirname, "../../packages/server/dist/cli/main.js");
const PEPPER = { BENCH_PEPPER: "of the benchmark, and of nothing else", PAWL_API_KEYS_PEPPER: "env:BENCH_PEPPER" };

export interface PawlService {
  readonly url: string;
  readonly pid: number;
  stop(): Promise<void>;
}

/** `pawl serve` on a store, in a process of its own; open to this machine, or to those with a key. */
export async function serving(store: string, auth: "none" | "keys" = "none"): Promise<PawlService> {
  const keys = auth === "keys" ? ["--auth", "keys"] : [];
  const args = [COMMAND, "serve", "--store", store, "--listen", "127.0.0.1:0", "--log-format", "lines", "--log-level", "silent", ...keys];
  const service = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"], env: { ...process.env, ...PEPPER } });
  const url = await addressOf(service);
  while (!(await fetch(`${url}/readyz`)).ok) await sleep(20);
  return {
    url,
    pid: service.pid ?? 0,
    async stop() {
      service.kill("SIGTERM");
      if (service.exitCode === null) await once(service, "exit");
    },
  };
}

/** A key of the whole store, for a service with keys on it. */
export async function newKey(store: string, name: string): Promise<string> {
  const args = [COMMAND, "api-keys", "create", name, "--role", "admin", "--store", store, "--json"];
  const { stdout } = await promisify(execFile)(process.execPath, args, { env: { ...process.env, ...PEPPER } });
  return (JSON.parse(stdout) as { readonly secret: string }).secret;
}

async function addressOf(service: ChildProcess): Promise<string> {
  if (service.stdout === null) throw new Error("the service has no output");
  for await (const line of createInterface(service.stdout)) {
    const [, address] = /^listening\s+(\S+)/.exec(line) ?? [];
    if (address !== undefined) {
      service.stdout.resume();
      return address;
    }
  }
  throw new Error("the service ended before it listened");
}
