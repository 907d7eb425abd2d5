/**
 * What a task depends on is down for ten minutes, in real time, on a real Postgres, with everything by default: no job may die of
 * it. One task gets a hundred jobs a second, another one a minute. `npm run outage`; minutes may be given, of the outage and
 * of the time before it: `npm run outage -- 10 5`. Ends with 1 if a job died, or one was not done in the end.
 */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, createServer, get, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { open, type Pawl, task } from "../../packages/pawl/src/index.js";

const [outage = 10, before = 5] = process.argv.slice(2).map(Number);
const MINUTE = 60_000;
/** after which those who still wait are given up */
const WAIT_MS = 10 * MINUTE;
const RATES = { busy: 100, seldom: 1 / 60 } as const;
type Name = keyof typeof RATES;
const NAMES = Object.keys(RATES) as readonly Name[];

/** What the handlers call: it answers, or nobody listens there. */
class Dependency {
  #server: Server | undefined;
  #port = 0;
  readonly agent = new Agent({ keepAlive: true });

  async up(): Promise<void> {
    this.#server = createServer((_, response) => response.end("done"));
    this.#server.listen(this.#port, "127.0.0.1");
    await once(this.#server, "listening");
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  down(): void {
    this.#server?.close();
    this.#server?.closeAllConnections();
  }

  async call(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      get({ host: "127.0.0.1", port: this.#port, agent: this.agent }, (response) => response.resume().on("end", resolve)).on("error", reject);
    });
  }
}

const started = performance.now();
function say(text: string): void {
  process.stdout.write(`${((performance.now() - started) / 1_000).toFixed(1).padStart(7)} s  ${text}\n`);
}

const dependency = new Dependency();
const counter = { busy: { calls: 0, failed: 0, most: 0 }, seldom: { calls: 0, failed: 0, most: 0 } };
const tasks = NAMES.map((name) =>
  task(name, async (_: unknown, ctx) => {
    const own = counter[name];
    own.calls++;
    own.most = Math.max(own.most, ctx.attempt);
    try {
      await dependency.call();
    } catch (error) {
      own.failed++;
      throw error;
    }
  }),
);

/** At its rate, until it is told to stop; what could not be stored in time is stored at once. Answers how many. */
function produce(pawl: Pawl, name: Name): () => Promise<number> {
  const of = tasks.find((one) => one.name === name) as (typeof tasks)[number];
  const since = performance.now();
  let made = 0;
  let going = true;
  const done = (async () => {
    while (going) {
      const owed = Math.floor(((performance.now() - since) / 1_000) * RATES[name]) + 1 - made;
      if (owed > 0) await pawl.enqueueMany(of, Array.from({ length: owed }));
      made += owed;
      await pause(100);
    }
  })();
  return async () => {
    going = false;
    await done;
    return made;
  };
}

async function until(what: string, patience: number, holds: () => Promise<boolean>): Promise<boolean> {
  const end = performance.now() + patience;
  while (performance.now() < end) {
    if (await holds()) return true;
    await pause(1_000);
  }
  say(`gave up waiting until ${what}`);
  return false;
}

const folder = mkdtempSync(join(tmpdir(), "pawl-outage-"));
await dependency.up();
const pawl = await open(process.env.PAWL_OUTAGE_STORE ?? join(folder, "data"), { tasks });
pawl.on("breaker.changed", ({ task: of, state }) => say(`the breaker of ${of} is ${state}: ${JSON.stringify(counter[of as Name])}`));
await pawl.work();
say(`on ${(await pawl.info()).version}, ${RATES.busy} jobs a second and one a minute`);
const producers = NAMES.map((name) => produce(pawl, name));
await pause(before * MINUTE);
say(`down: ${JSON.stringify(await pawl.counts())}`);
dependency.down();
await pause(outage * MINUTE);
const made = await Promise.all(producers.map((stop) => stop()));
say(`up again: ${JSON.stringify(await pawl.counts())} ${JSON.stringify(counter)}`);
await dependency.up();
const done = await until("all are done", WAIT_MS, async () => {
  const { ready, running, scheduled } = await pawl.counts();
  return ready + running + scheduled === 0;
});
const counts = await pawl.counts();
const all = made.reduce((sum, one) => sum + one, 0);
const well = done && counts.dead === 0 && counts.succeeded === all;
say(`${well ? "well" : "NOT WELL"}: ${all} jobs, ${counts.succeeded} done, ${counts.dead} dead; ${JSON.stringify(counter)}`);
await pawl.close();
dependency.down();
dependency.agent.destroy();
rmSync(folder, { recursive: true, force: true });
process.exitCode = well ? 0 : 1;
