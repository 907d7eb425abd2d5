import type { JobId } from "../../../core/jobs/id.js";
import type { JobRecord } from "../../../core/jobs/job.js";
import { limitKeyId } from "../../../core/limits/limit-rule.js";
import type { SlotHolder } from "../../../core/observe/explain.js";
import type { Scope } from "../../port/index.js";
import { MAX_HOLDERS } from "../../port/observe/explain.js";
import { type Db, statement } from "../connection/db.js";
import { readFor } from "../connection/tenant-role.js";
import { readFacts } from "../jobs/job-state.js";

/** The first of each kind, by its index: of both at once, all would be read to sort them, or the jobs of all keys in their order. */
const few = (kind: "key" | "serial") => `(select s.job from pawl.slot s where s.kind = '${kind}' and s.key = $1 order by s.job limit ${MAX_HOLDERS})`;
const HOLDERS = statement("key_holders", `select s.job from (${few("key")} union all ${few("serial")}) s order by s.job limit ${MAX_HOLDERS}`);

/** Some of those that hold the key a job is parked at, as far as the scope has them. */
export async function keyHolders(db: Db, scope: Scope, { lane, limitKey }: JobRecord): Promise<readonly SlotHolder[]> {
  if (limitKey === undefined) return [];
  const ids = (await db.query<{ job: JobId }>(HOLDERS, [limitKeyId(lane.tenant, limitKey)])).map(({ job }) => job);
  const facts = await readFor(db, scope, (on) => readFacts(on, ids));
  const states = new Map(facts.map(({ id, state }) => [id, state]));
  return ids.flatMap((job) => {
    const state = states.get(job);
    return state === undefined ? [] : [{ job, state }];
  });
}
