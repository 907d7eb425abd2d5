import type { KeyHolder } from "../../core/explain.js";
import type { JobId } from "../../core/id.js";
import type { JobRecord } from "../../core/job.js";
import { gateKey } from "../../core/limit.js";
import type { Scope } from "../port.js";
import { MOST_HOLDERS } from "../port-explain.js";
import { type Db, statement } from "./db.js";
import { readFacts } from "./facts.js";
import { readFor } from "./wall.js";

/** The first of each kind, by its index: of both at once, all would be read to sort them, or the jobs of all keys in their order. */
const few = (kind: "key" | "serial") =>
  `(select s.job from pawl.slot s where s.kind = '${kind}' and s.key = $1 order by s.job limit ${MOST_HOLDERS})`;
const HOLDERS = statement("key_holders", `select s.job from (${few("key")} union all ${few("serial")}) s order by s.job limit ${MOST_HOLDERS}`);

/** Some of those that hold the key a job is parked at, as far as the scope has them. */
export async function keyHolders(db: Db, scope: Scope, { lane, parkedAt }: JobRecord): Promise<readonly KeyHolder[]> {
  if (parkedAt === undefined) return [];
  const ids = (await db.query<{ job: JobId }>(HOLDERS, [gateKey(lane.tenant, parkedAt)])).map(({ job }) => job);
  const facts = await readFor(db, scope, (on) => readFacts(on, ids));
  const states = new Map(facts.map(({ id, state }) => [id, state]));
  return ids.flatMap((job) => {
    const state = states.get(job);
    return state === undefined ? [] : [{ job, state }];
  });
}
