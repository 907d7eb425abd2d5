import type { Inspector } from "../contract/inspector.js";
import { familyCpuMs } from "./cpu.js";
import type { RedisServer } from "./redis.js";

interface Keys {
  /** keys of lists, sorted sets and hashes whose sizes add up to what is not finished */
  readonly unfinished: readonly [command: "llen" | "zcard" | "hlen", key: string][];
  /** how many are finished and still there */
  readonly finished?: readonly [command: "zcard" | "scard", key: string] | "results";
}

const KEYS: Readonly<Record<string, Keys>> = {
  bullmq: {
    unfinished: [
      ["llen", "bull:bench:wait"],
      ["llen", "bull:bench:active"],
      ["zcard", "bull:bench:delayed"],
      ["zcard", "bull:bench:prioritized"],
    ],
    finished: ["zcard", "bull:bench:completed"],
  },
  "bee-queue": {
    unfinished: [
      ["llen", "bq:bench:waiting"],
      ["llen", "bq:bench:active"],
      ["zcard", "bq:bench:delayed"],
    ],
    finished: ["scard", "bq:bench:succeeded"],
  },
  sidekiq: {
    unfinished: [
      ["llen", "queue:bench"],
      ["zcard", "schedule"],
      ["zcard", "retry"],
    ],
  },
  celery: {
    unfinished: [
      ["llen", "celery"],
      ["hlen", "unacked"],
    ],
    finished: "results",
  },
};

/** A second connection. The client is the peers': where Redis is measured, they are installed. */
export async function inspectRedis(server: RedisServer, system: string): Promise<Inspector & { readonly version: string; close(): void }> {
  const { Redis } = await import("ioredis");
  const client = new Redis({ path: server.socket });
  client.on("error", () => {}); // it also rejects the calls
  const number = async (command: string, ...args: (string | number)[]) => Number(await client.call(command, ...args));
  const info = async (section: string) => {
    const lines = String(await client.call("info", section)).split("\r\n");
    return (name: string) => lines.find((line) => line.startsWith(`${name}:`))?.slice(name.length + 1) ?? "";
  };
  const keys = KEYS[system];
  if (keys === undefined) throw new Error(`nobody knows the keys of ${system}`);

  const unfinished = async () => {
    const sizes = await Promise.all(keys.unfinished.map(([command, key]) => number(command, key)));
    return sizes.reduce((sum, size) => sum + size, 0);
  };
  const finished = async () => {
    if (keys.finished === undefined) return undefined;
    if (keys.finished !== "results") return number(...keys.finished);
    return number("eval", "return #redis.call('keys', 'celery-task-meta-*')", 0);
  };

  return {
    shared: true,
    version: (await info("server"))("redis_version"),
    unfinished,
    counts: async () => ({ unfinished: await unfinished(), finished: await finished() }),
    async usage() {
      const [memory, stats] = [await info("memory"), await info("stats")];
      return {
        cpuMs: familyCpuMs(server.pid) ?? Number.NaN,
        logBytes: server.logBytes(),
        dataBytes: Number(memory("used_memory")),
        commits: Number.NaN,
        statements: Number(stats("total_commands_processed")),
      };
    },
    pin: async () => async () => {},
    unsettled: () => Promise.reject(new Error("only Pawl's leases are counted")),
    query: () => Promise.reject(new Error("Redis speaks no SQL")),
    close: () => client.disconnect(),
  };
}
