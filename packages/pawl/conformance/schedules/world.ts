import type { Definition, ScheduleRecord } from "../../src/core/schedules/schedule.js";
import type { TickEntry } from "../../src/store/port/schedules/schedules.js";
import { dutiesOf } from "../duties.js";
import { HOUR, lane, MINUTE, SECOND, START, type World } from "../world.js";

/** What the tests of schedules do and see, in few words. */

export type DefinitionSpec = Partial<Omit<Definition, "missed">> & { readonly missed?: Partial<Definition["missed"]> };

/** Every minute, unless told otherwise. */
export function definition({ missed, ...spec }: DefinitionSpec = {}): Definition {
  return {
    rule: { kind: "every", every: MINUTE },
    overlap: "skip",
    job: { lane: lane(), input: "null", options: undefined },
    ...spec,
    missed: { policy: "latest", tolerance: MINUTE, window: HOUR, max: 100, pace: SECOND, ...missed },
  };
}

export const REF = { tenant: "acme", name: "s" };

export async function put(w: World, spec: DefinitionSpec = {}, name = REF.name): Promise<void> {
  await w.store.schedules.put([{ ...REF, name, definition: definition(spec) }]);
}

export async function tick(w: World, limit = 100): Promise<number> {
  return (await dutiesOf(w.store).tick(limit, () => w.idSuffix())).jobs;
}

/** Ticks until nothing is due. */
export async function catchUp(w: World): Promise<number> {
  let jobs = 0;
  for (;;) {
    const ticked = await dutiesOf(w.store).tick(100, () => w.idSuffix());
    jobs += ticked.jobs;
    if (ticked.schedules === 0) return jobs;
  }
}

export async function get(w: World): Promise<ScheduleRecord> {
  return (await w.store.schedules.get(REF)) as ScheduleRecord;
}

/** What became of every tick, oldest first, in minutes since the start. */
export async function account(w: World): Promise<readonly string[]> {
  const minutes = (at: number) => (at - START) / MINUTE;
  const words = (entry: TickEntry): string => {
    if ("at" in entry) return `${minutes(entry.at)} ${entry.way}${entry.merged === 0 ? "" : ` for ${entry.merged} more`}`;
    const range = entry.count === 1 ? minutes(entry.from) : `${minutes(entry.from)}–${minutes(entry.to)} (${entry.count})`;
    return entry.mergedInto === undefined ? `${range} skipped: ${entry.skipped}` : `${range} merged into ${minutes(entry.mergedInto)}`;
  };
  return [...(await w.store.schedules.ticks(REF, { limit: 100 }))].reverse().map(words);
}

export async function jobs(w: World) {
  return [...(await w.store.jobs.list("everyone", {}, { limit: 1_000 })).jobs].reverse();
}
