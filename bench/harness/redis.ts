import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

const SETTINGS = { appendonly: "yes", appendfsync: "always", save: "", maxmemory: "0" };

export const redisSettings = Object.entries(SETTINGS)
  .map(([name, value]) => `${name} ${value || '""'}`)
  .join(", ");

export interface RedisServer {
  readonly socket: string;
  readonly pid: number;
  /** bytes of its append-only files */
  logBytes(): number;
  stop(): Promise<void>;
}

/** A Redis of one turn's own, in its own folder: emptier than any flush. */
export async function startRedis(folder: string): Promise<RedisServer> {
  mkdirSync(folder, { recursive: true });
  const socket = join(folder, "redis.sock");
  const switches = Object.entries(SETTINGS).flatMap(([name, value]) => [`--${name}`, value]);
  const server = spawn("redis-server", ["--port", "0", "--unixsocket", socket, "--dir", folder, "--loglevel", "warning", ...switches], {
    stdio: ["ignore", "ignore", "inherit"],
    detached: true, // Ctrl-C is for us: we stop it when its clients are gone
  });
  await listening(server, socket);
  return {
    socket,
    pid: server.pid ?? 0,
    logBytes: () => sizeOf(folder),
    async stop() {
      if (server.exitCode === null && server.signalCode === null) {
        const ended = once(server, "exit");
        server.kill("SIGKILL"); // nobody needs its data any more
        await ended;
      }
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function listening(server: ChildProcess, socket: string): Promise<void> {
  const failed = once(server, "error").then(([error]) => Promise.reject(error as Error));
  const ended = once(server, "exit").then(() => Promise.reject(new Error("redis-server ended at once")));
  failed.catch(() => {});
  ended.catch(() => {});
  while (!existsSync(socket)) await Promise.race([pause(5), failed, ended]);
}

function sizeOf(folder: string): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + (statSync(join(entry.parentPath, entry.name), { throwIfNoEntry: false })?.size ?? 0), 0);
}
