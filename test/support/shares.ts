import { eventually } from "./eventually.js";
import type { Stage } from "./stage.js";

/** Worker time of attempts between two instants of the store's clock (ms), by whatever `by` says of a job `j`. */
export async function workedBetween(stage: Stage, by: string, from: number, to: number): Promise<ReadonlyMap<string, number>> {
  const rows = await stage.rows<{ name: string; ms: number }>(
    `select (${by})::text as name, (sum(extract(epoch from least(a.finished_at, w.until) - greatest(a.started_at, w.since))) * 1000)::float8 as ms
     from (select to_timestamp($1::float8 / 1000) as since, to_timestamp($2::float8 / 1000) as until) w
     join pawl.any_attempt a on a.started_at < w.until and a.finished_at > w.since and a.outcome <> 5
     join pawl.any_job j on j.id = a.job group by 1`,
    [from, to],
  );
  return new Map(rows.map(({ name, ms }) => [name, ms]));
}

export async function storeTime(stage: Stage): Promise<number> {
  return stage.one<number>("select (extract(epoch from clock_timestamp()) * 1000)::float8");
}

/** Waits until an instant of the store's clock. */
export async function passes(stage: Stage, until: number): Promise<void> {
  await eventually("time passes", async () => (await storeTime(stage)) >= until, 60_000);
}

/** Those that were in a window are settled soon after it. */
export async function settledUntil(stage: Stage, until: number): Promise<void> {
  await passes(stage, until + 1_500);
}

/** 1 where all have alike, 1/n where one has it all (Jain's index). */
export function evenness(shares: readonly number[]): number {
  const sum = shares.reduce((total, one) => total + one, 0);
  const squares = shares.reduce((total, one) => total + one * one, 0);
  return sum ** 2 / (shares.length * squares);
}
