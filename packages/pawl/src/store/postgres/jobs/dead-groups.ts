import type { Failure, FailureKind } from "../../../core/jobs/failure.js";
import { type Fingerprint, fingerprintOf } from "../../../core/jobs/fingerprint.js";
import type { JobId } from "../../../core/jobs/id.js";
import type { Scope } from "../../port/index.js";
import type { DeadGroup, DeadGroupFilter, DeadStore } from "../../port/jobs/dead.js";
import { plainArray } from "../connection/arrays.js";
import { type Db, ms, statement } from "../connection/db.js";
import { readFor } from "../connection/tenant-role.js";
import { readFacts, withoutStarted } from "./job-state.js";

const BATCH_ROWS = 1_000;

const UNREAD = statement(
  "unread_dead",
  `select d.id, extract(epoch from d.died_at)::text as died, d.task, d.kind, d.name, a.failure::text as failure
   from (select * from pawl.dead where fingerprint is null order by id limit $1) d
   left join lateral (select a.failure from pawl.any_attempt a where a.job = d.id order by a.lease desc limit 1) a on true`,
);

/**
 * `died`: one that was redriven and died again meanwhile died of something else, it may be. Rows that somebody is at are
 * left for the next time, so that nobody waits for this.
 */
const NOTE = statement(
  "note_fingerprints",
  `with locked as materialized (select id from pawl.dead where id = any($1::uuid[]) and fingerprint is null order by id for update skip locked)
   update pawl.dead d set fingerprint = g.fingerprint from locked h, unnest($1::uuid[], $2::text[], $3::text[]) as g(id, died, fingerprint)
   where d.id = h.id and g.id = h.id and extract(epoch from d.died_at)::text = g.died returning d.id`,
);

interface UnreadRow {
  readonly id: JobId;
  readonly died: string;
  readonly task: string;
  readonly kind: FailureKind;
  readonly name: string;
  readonly failure: string | null;
}

/** Reads what the newly dead died of, a batch at a time. Each is read once, by whoever asks first. */
export async function readCauses(db: Db): Promise<void> {
  for (;;) {
    const rows = await db.query<UnreadRow>(UNREAD, [BATCH_ROWS]);
    if (rows.length === 0) return;
    const prints = rows.map(({ task, kind, name, failure }) =>
      fingerprintOf(task, failure === null ? { kind, name, message: "" } : (JSON.parse(failure) as Failure)),
    );
    const noted = await db.query(NOTE, [plainArray(rows.map(({ id }) => id)), plainArray(rows.map(({ died }) => died)), plainArray(prints)]);
    if (rows.length < BATCH_ROWS || noted.length === 0) return;
  }
}

const GROUPS = statement(
  "dead_groups",
  `select d.fingerprint, count(*)::float8 as count, ${ms("min(d.died_at)")} as first_at, ${ms("max(d.died_at)")} as last_at, max(d.id::text) as sample
   from pawl.dead d
   where d.fingerprint is not null and ($2::text is null or d.tenant = $2) and ($3::text is null or d.queue = $3) and ($4::text is null or d.task = $4)
     and ($5::text is null or d.kind = $5 or d.name = $5)
   group by d.fingerprint order by count(*) desc, max(d.died_at) desc, d.fingerprint limit $1`,
);

interface GroupRow {
  readonly fingerprint: Fingerprint;
  readonly count: number;
  readonly first_at: number;
  readonly last_at: number;
  readonly sample: JobId;
}

export function postgresDead(db: Db): DeadStore {
  return { groups: (scope, filter, limit) => groups(db, scope, filter, limit) };
}

async function groups(db: Db, scope: Scope, { queue, task, failure }: DeadGroupFilter, limit: number): Promise<readonly DeadGroup[]> {
  await readCauses(db);
  const tenant = scope === "everyone" ? null : scope.tenant;
  const { rows, facts } = await readFor(db, scope, async (on) => {
    const rows = await on.query<GroupRow>(GROUPS, [limit, tenant, queue ?? null, task ?? null, failure ?? null]);
    const samples = rows.map(({ sample }) => sample);
    return { rows, facts: await readFacts(on, samples) };
  });
  const samples = new Map(facts.map((one) => [one.id, withoutStarted(one)]));
  return rows.flatMap(({ fingerprint, count, first_at, last_at, sample: id }) => {
    // It may have been dropped between the two statements: then its group is smaller, and the next look tells.
    const sample = samples.get(id);
    return sample === undefined ? [] : [{ fingerprint, count, firstAt: first_at, lastAt: last_at, sample }];
  });
}
