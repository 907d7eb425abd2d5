import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import type { Place, Session } from "../contract.ts";
import { connectWith, urlOf } from "./pawl.ts";

const COMMAND = resolve(import.meta.dirname, "../../packages/server/dist/cli/main.js");

/** The same interface over HTTP: `pawl serve` in a process of its own, on the same store, and its client here. */
export async function connect(place: Place): Promise<Session> {
  const service = spawn(process.execPath, [COMMAND, "serve", "--store", urlOf(place), "--listen", "127.0.0.1:0", "--log-level", "silent"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const url = await addressOf(service);
  while (!(await fetch(`${url}/readyz`)).ok) await sleep(20);
  const session = await connectWith(place, { url });
  return {
    ...session,
    async stop() {
      await session.stop();
      service.kill("SIGTERM");
      if (service.exitCode === null) await once(service, "exit");
    },
  };
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
