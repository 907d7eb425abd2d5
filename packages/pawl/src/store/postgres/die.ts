import type { Failure } from "../../core/failure.js";
import { plainArray } from "./arrays.js";
import { count } from "./counts.js";
import { type Db, statement } from "./db.js";
import type { Queryable } from "./drivers/driver.js";
import { markDead, type PendingJob, type Placement, put } from "./pending.js";
import { vacate } from "./tickets.js";

const UNTIE = statement("untie", "delete from pawl.dependency where child = any($1::uuid[])");
const UNASK = statement("unask", "delete from pawl.intent where job = any($1::uuid[])");

/** Jobs that waited and were taken out of where they did are dead, and wait for nothing and nobody any more. */
export async function die(db: Db, on: Queryable, victims: readonly PendingJob[], why: (job: PendingJob) => Failure): Promise<void> {
  if (victims.length === 0) return;
  const ids = victims.map(({ id }) => id);
  await on.query(UNTIE, [plainArray(ids)]);
  await on.query(UNASK, [plainArray(ids)]);
  await vacate(db, on, ids, { finished: true });
  const placements = victims.map((job): Placement => {
    const { id, lane, spent, crashes } = job;
    return { id, lane, to: "dead", spent, crashes, failure: why(job) };
  });
  await put(db, on, placements);
  await markDead(db, on, placements);
  await count(
    on,
    victims.map(({ lane, state }) => ({ lane, from: state, to: "dead" as const })),
  );
}
