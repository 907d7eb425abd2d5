import { doomedBy, releaseOf } from "../../core/dependency.js";
import type { JobId } from "../../core/id.js";
import type { State } from "../../core/job.js";
import { ALL_NULL, plainArray, textArray } from "./arrays.js";
import type { Candidate } from "./candidate.js";
import { count } from "./counts.js";
import { type Db, statement } from "./db.js";
import type { Queryable, Transaction } from "./drivers/driver.js";
import { type Facts, readFacts } from "./facts.js";
import { LanesTable, laneCte } from "./lanes-table.js";
import { optionsText } from "./options-text.js";
import { markDead, type Placement, put } from "./pending.js";
import type { Span } from "./span.js";

const STORE = statement(
  "store_jobs",
  `
  with ${laneCte(2)},
  given as materialized (
    select l.queue, l.band, l.tenant, l.task, g.* from unnest($6::uuid[], $7::int[], $8::text[], $9::text[], $10::float8[], $11::float8[], $12::float8[]) as g(id, lane, input, options, due, expire, deadline)
    join lane l on l.no = g.lane
  ),
  stored as (
    insert into pawl.job (created_at, due_at, id, band, queue, tenant, task, input, options, home)
    select to_timestamp($1::float8 / 1000), to_timestamp(due / 1000), id, band, queue, tenant, task, input::json, options::json, nextval('pawl.ready_seq') from given
    where pg_current_xact_id() is not null
  )
  insert into pawl.timer (at, job, kind)
  select to_timestamp((g.due + t.after) / 1000), g.id, t.kind
  from given g cross join lateral (values ('expire', g.expire), ('deadline', g.deadline)) as t(kind, after) where t.after is not null`,
);

export async function storeJobs(tx: Queryable, created: readonly Candidate[], span: Span): Promise<void> {
  if (created.length === 0) return;
  const lanes = new LanesTable();
  const numbers = created.map(({ job }) => lanes.number(job.lane));
  const timed = created.some(({ job }) => job.options?.expire !== undefined || job.options?.deadline !== undefined);
  await tx.query(STORE, [
    span.now,
    ...lanes.parameters(),
    plainArray(created.map(({ id }) => id)),
    plainArray(numbers),
    textArray(created.map(({ job }) => job.input)),
    textArray(created.map(({ job }) => optionsText(job))),
    plainArray(created.map(({ due }) => due)),
    timed ? plainArray(created.map(({ job }) => job.options?.expire)) : ALL_NULL,
    timed ? plainArray(created.map(({ job }) => job.options?.deadline)) : ALL_NULL,
  ]);
}

export async function readParents(tx: Queryable, candidates: readonly Candidate[]): Promise<ReadonlyMap<JobId, Facts>> {
  const ids = new Set(candidates.flatMap(({ job }) => job.dependsOn?.parents ?? []));
  return new Map((await readFacts(tx, [...ids])).map((facts) => [facts.id, facts]));
}

const TIE = statement(
  "tie",
  "insert into pawl.dependency (parent, child, on_death) select * from unnest($1::uuid[], $2::uuid[], $3::text[]) on conflict do nothing",
);

/** Where each new job goes: ready or scheduled by its time, blocked while a parent is not done, dead if one dooms it. */
export async function placeJobs(
  db: Db,
  tx: Transaction,
  created: readonly Candidate[],
  parents: ReadonlyMap<JobId, Facts>,
  span: Span,
): Promise<void> {
  const ties: { parent: JobId; child: JobId; onDeath: string }[] = [];
  const placements = created.map(({ job, id, due }): Placement => {
    const base = { id, lane: job.lane, spent: 0, crashes: 0, runAt: due };
    const { parents: ids = [], onDeath = "die" } = job.dependsOn ?? {};
    const judged = ids.map((parent) => ({ parent, release: releaseOf((parents.get(parent) as Facts).state, onDeath) }));
    const killer = judged.find(({ release }) => release === "doomed");
    if (killer !== undefined) return { ...base, to: "dead", failure: doomedBy(killer.parent) };
    const waits = judged.filter(({ release }) => release === "waits");
    for (const { parent } of waits) ties.push({ parent, child: id, onDeath });
    if (waits.length > 0) return { ...base, to: "blocked" };
    return { ...base, to: due <= span.now ? "ready" : "scheduled" };
  });
  if (ties.length > 0)
    await tx.query(TIE, [
      plainArray(ties.map((tie) => tie.parent)),
      plainArray(ties.map((tie) => tie.child)),
      textArray(ties.map((tie) => tie.onDeath)),
    ]);
  await put(db, tx, placements);
  const stillborn = placements.filter((job) => job.to === "dead");
  await markDead(db, tx, stillborn);
  await count(
    tx,
    placements.map((job) => ({ lane: job.lane, from: undefined, to: job.to as State })),
  );
}
