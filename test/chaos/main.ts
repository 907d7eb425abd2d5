/**
 * `npm run chaos -- [--minutes N] [--seed S]`: workers under load while random things go wrong, one after the other;
 * invariants are checked from the tables all along, and at the end when everything is healed and drained. Needs the
 * embedded Postgres. The seed repeats the choices, not the timing of the machine.
 */

import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { eventually } from "../support/eventually.js";
import { ProcessFixture } from "../support/fixtures/process-fixture.js";
import { reclaimTimeMs } from "../support/fixtures/reclaim-time.js";
import { checkInvariants } from "../support/races/invariants.js";
import { seededRandom } from "../support/seeded-random.js";
import { startPrivateServer } from "../support/servers/private-server.js";
import { TcpProxy } from "../support/servers/tcp-proxy.js";
import { FAULTS } from "./faults.js";
import { Fleet } from "./fleet.js";
import { Load } from "./load.js";
import { Progress } from "./progress.js";
import { endSchedules, startSchedules } from "./schedules.js";
import { verdict } from "./verdict.js";

const { values } = parseArgs({ options: { minutes: { type: "string", default: "3" }, seed: { type: "string" } } });
const minutes = Number(values.minutes);
if (!(minutes > 0)) throw new Error(`--minutes ${values.minutes} is not a number above zero`);
const random = seededRandom("chaos", values.seed === undefined ? undefined : Number(values.seed));
let interrupted = false;
process.once("SIGINT", () => {
  interrupted = true;
});

const STRANDED = 100_000;
const progress = new Progress();
progress.say(`${minutes} minute(s), repeat with --seed ${random.seed}`);
const server = await startPrivateServer();
try {
  await drill();
  await using database = await server.database();
  const proxy = await TcpProxy.before(server.address);
  await using fixture = await ProcessFixture.open({
    url: proxy.url(database.name),
    directUrl: database.url,
    open: { postgres: { statementTimeout: 4_000, startupWait: 60_000 } },
  });
  fixture.onDispose(() => proxy.close());
  await startSchedules(fixture);
  const fleet = new Fleet(fixture, 3);
  const load = new Load(fixture, random);
  const field = { fixture, server, proxy, fleet, random };
  const happened = new Map<string, number>();
  let last = "nothing yet";
  const ticker = setInterval(
    () =>
      progress.show(
        `${fixture.acknowledged.length} enqueued, ${fleet.alive.length} workers, ${[...happened.values()].reduce((a, b) => a + b, 0)} faults, last: ${last}`,
      ),
    250,
  );
  try {
    await Promise.all(fixture.children.map((worker) => worker.ready()));
    const end = progress.elapsed + minutes * 60_000;
    while (!interrupted && progress.elapsed < end) {
      const [name, fault] = random.pick(Object.entries(FAULTS));
      last = name;
      happened.set(name, (happened.get(name) ?? 0) + 1);
      await fault(field);
      await pause(random.between(300, 3_000));
      await checkInvariants({ client: fixture.client, handlerLog: fixture.handlerLog, acknowledged: [...fixture.acknowledged], quiet: false });
    }
    last = "healing";
    await load.stop();
    await eventually("workers are up", () => fleet.alive.length >= 3 && fleet.alive.some((worker) => worker.heard("ready").length > 0), 120_000);
    await endSchedules(fixture);
    await fixture.drained(180_000);
    fleet.rest();
  } finally {
    clearInterval(ticker);
  }
  progress.say(`faults: ${[...happened].map(([name, n]) => `${n} ${name}`).join(", ")}`);
  progress.say(`orders: ${load.requests}, repeated ${load.repeated} times; ${[...load.counter].map(([task, n]) => `${n} ${task}`).join(", ")}`);
  for (const line of await verdict(fixture, fleet)) progress.say(line);
} catch (error) {
  progress.say(`FAILED with --seed ${random.seed}`);
  console.error(error);
  process.exitCode = 1;
} finally {
  await server.close();
}

/** 100,000 stranded jobs, before anything else goes wrong. */
async function drill(): Promise<void> {
  await using database = await server.database();
  progress.say("stranding 100,000 jobs …");
  const took = await reclaimTimeMs(database.url, STRANDED);
  progress.say(`they came back in ${(took / 1_000).toFixed(1)} s (at most 30)`);
  if (took > 30_000) throw new Error(`E8 100,000 stranded jobs took ${Math.round(took)} ms to come back`);
}
