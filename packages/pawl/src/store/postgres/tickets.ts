import type { JobId } from "../../core/id.js";
import { type GateKey, gateKey, type JobLimit, type LimitRule, passesOf } from "../../core/limit.js";
import { plainArray, textArray } from "./arrays.js";
import { type Db, NOW, statement } from "./db.js";
import type { Queryable } from "./drivers/driver.js";
import { noteKnocks } from "./knocks.js";

const SAVE_TICKETS = statement(
  "save_tickets",
  `insert into pawl.ticket (job, gates, serial, limits)
   select g.job, array(select json_array_elements_text(g.gates::json)), g.serial, g.limits::json
   from unnest($1::uuid[], $2::text[], $3::bool[], $4::text[]) as g(job, gates, serial, limits) on conflict do nothing`,
);

/** Whoever lets jobs in writes the gates; the knock brings the rule, so that no caller's transaction holds a gate. */
const KNOCK_WITH_RULES = statement(
  "knock_with_rules",
  `insert into pawl.knock (at, key, rule) select ${NOW}, g.key, g.rule::json from unnest($2::text[], $3::text[]) as g(key, rule)`,
);

export interface Limited {
  readonly id: JobId;
  readonly tenant: string;
  readonly limits: readonly JobLimit[];
}

/** What jobs under limits need as long as they are unfinished. */
export async function saveTickets(db: Db, on: Queryable, jobs: readonly Limited[]): Promise<void> {
  if (jobs.length === 0) return;
  const rules = new Map<GateKey, LimitRule>();
  const rows = jobs.map(({ id, tenant, limits }) => {
    const passes = passesOf(tenant, limits);
    for (const { gate, rule } of passes) rules.set(gate, rule);
    const byGate = new Map(limits.map((limit) => [gateKey(tenant, limit), limit]));
    return { id, passes, limits: passes.map(({ gate }) => byGate.get(gate)) };
  });
  await on.query(SAVE_TICKETS, [
    plainArray(rows.map(({ id }) => id)),
    textArray(rows.map(({ passes }) => JSON.stringify(passes.map(({ gate }) => gate)))),
    plainArray(rows.map(({ passes }) => passes[0]?.rule.serial === true)),
    textArray(rows.map(({ limits }) => JSON.stringify(limits))),
  ]);
  await on.query(KNOCK_WITH_RULES, [db.now(), textArray([...rules.keys()]), textArray([...rules.values()].map((rule) => JSON.stringify(rule)))]);
  noteKnocks(on, rules.keys());
}

/**
 * A job leaves: what it holds is free for others, but for its turn in a serial line, which it keeps until it is
 * finished. Limits on lanes need no knock: their jobs are ready all along.
 */
const VACATE = statement(
  "vacate",
  `
  with freed as (delete from pawl.slot where job = any($2::uuid[]) and ($3::bool or kind <> 'serial') returning kind, key),
  torn as (delete from pawl.ticket where $3::bool and job = any($2::uuid[])),
  gates as materialized (select distinct key from freed where kind in ('key', 'serial', 'rate')),
  knocked as (insert into pawl.knock (at, key) select ${NOW}, key from gates)
  select key from gates`,
);

export async function vacate(db: Db, on: Queryable, jobs: readonly JobId[], how: { readonly finished: boolean }): Promise<void> {
  if (jobs.length === 0) return;
  const rows = await on.query<{ key: string }>(VACATE, [db.now(), plainArray(jobs), how.finished]);
  noteKnocks(
    on,
    rows.map(({ key }) => key),
  );
}

const KNOCK_PAUSED = statement(
  "knock_paused",
  `insert into pawl.knock (at, key, paused_until) select ${NOW}, g.key, ${NOW} + g.duration * interval '1 millisecond' from unnest($2::text[], $3::float8[]) as g(key, duration)`,
);

/** Nobody is let in for so many ms; 0 opens it. */
export async function pauseGates(db: Db, on: Queryable, pauses: readonly { readonly gate: GateKey; readonly for: number }[]): Promise<void> {
  if (pauses.length === 0) return;
  await on.query(KNOCK_PAUSED, [db.now(), textArray(pauses.map(({ gate }) => gate)), plainArray(pauses.map((pause) => pause.for))]);
  noteKnocks(
    on,
    pauses.map(({ gate }) => gate),
  );
}
