/**
 * `npm run chaos -- [--minutes N] [--seed S]`: workers under load while random things go wrong, one after the other;
 * invariants are checked from the tables all along, and at the end when everything is healed and drained. Needs the
 * embedded Postgres. The seed repeats the choices, not the timing of the machine.
 */

import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { eventually } from "../support/eventually.js";
import { checkInvariants } from "../support/invariants.js";
import { startPrivateServer } from "../support/private-server.js";
import { Wire } from "../support/proxy.js";
import { chance } from "../support/seed.js";
import { Stage } from "../support/stage.js";
import { timeToUnstrand } from "../support/stranded.js";
import { FAULTS } from "./faults.js";
import { Fleet } from "./fleet.js";
import { Load } from "./load.js";
import { Progress } from "./progress.js";
import { endSchedules, startSchedules } from "./schedules.js";
import { verdict } from "./verdict.js";

const { values } = parseArgs({ options: { minutes: { type: "string", default: "3" }, seed: { type: "string" } } });
const minutes = Number(values.minutes);
if (!(minutes > 0)) throw new Error(`--minutes ${values.minutes} is not a number above zero`);
const dice = chance("chaos", values.seed === undefined ? undefined : Number(values.seed));
let interrupted = false;
process.once("SIGINT", () => {
  interrupted = true;
});

const STRANDED = 100_000;
const progress = new Progress();
progress.say(`${minutes} minute(s), repeat with --seed ${dice.seed}`);
const server = await startPrivateServer();
try {
  await drill();
  await using database = await server.database();
  const proxy = await Wire.before(server.address);
  await using stage = await Stage.open({
    url: proxy.url(database.name),
    directUrl: database.url,
    open: { postgres: { statementTimeout: 4_000, patience: 60_000 } },
  });
  stage.atEnd(() => proxy.close());
  await startSchedules(stage);
  const fleet = new Fleet(stage, 3);
  const load = new Load(stage, dice);
  const field = { stage, server, proxy, fleet, dice };
  const happened = new Map<string, number>();
  let last = "nothing yet";
  const ticker = setInterval(
    () =>
      progress.show(
        `${stage.acked.length} enqueued, ${fleet.alive.length} workers, ${[...happened.values()].reduce((a, b) => a + b, 0)} faults, last: ${last}`,
      ),
    250,
  );
  try {
    await Promise.all(stage.children.map((worker) => worker.ready()));
    const end = progress.elapsed + minutes * 60_000;
    while (!interrupted && progress.elapsed < end) {
      const [name, fault] = dice.pick(Object.entries(FAULTS));
      last = name;
      happened.set(name, (happened.get(name) ?? 0) + 1);
      await fault(field);
      await pause(dice.between(300, 3_000));
      await checkInvariants({ client: stage.client, sink: stage.sink, acked: [...stage.acked], quiet: false });
    }
    last = "healing";
    await load.stop();
    await eventually("workers are up", () => fleet.alive.length >= 3 && fleet.alive.some((worker) => worker.heard("ready").length > 0), 120_000);
    await endSchedules(stage);
    await stage.drained(180_000);
    fleet.rest();
  } finally {
    clearInterval(ticker);
  }
  progress.say(`faults: ${[...happened].map(([name, n]) => `${n} ${name}`).join(", ")}`);
  progress.say(`orders: ${load.requests}, repeated ${load.repeated} times; ${[...load.tally].map(([task, n]) => `${n} ${task}`).join(", ")}`);
  for (const line of await verdict(stage, fleet)) progress.say(line);
} catch (error) {
  progress.say(`FAILED with --seed ${dice.seed}`);
  console.error(error);
  process.exitCode = 1;
} finally {
  await server.close();
}

/** 100,000 stranded jobs, before anything else goes wrong. */
async function drill(): Promise<void> {
  await using database = await server.database();
  progress.say("stranding 100,000 jobs …");
  const took = await timeToUnstrand(database.url, STRANDED);
  progress.say(`they came back in ${(took / 1_000).toFixed(1)} s (at most 30)`);
  if (took > 30_000) throw new Error(`E8 100,000 stranded jobs took ${Math.round(took)} ms to come back`);
}
