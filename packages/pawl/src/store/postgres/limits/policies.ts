import type { Limits, Policy, PolicyKind, PolicyRecord, PolicyRef } from "../../../core/sharing/policy.js";
import { isLimited } from "../../../core/sharing/policy.js";
import { isEmpty } from "../../../core/sharing/policy-check.js";
import type { PolicyStore } from "../../port/sharing/policies.js";
import { type Db, statement } from "../connection/db.js";
import type { DriverTransaction } from "../drivers/driver.js";

/** Also a lock: changes of policies, and of targets, come one after the other. */
export const RAISE_POLICY_VERSION = statement(
  "raise_policy_version",
  `insert into pawl.policy_version as m (version) values (1) on conflict (only_one) do update set version = m.version + 1 returning version::float8  -- guard: policy-version-is-a-lock
  `,
);
const READ_POLICY_VERSION = statement("read_policy_version", "select version::text from pawl.policy_version");
const COLUMNS = "kind, name, policy::text, version::float8";
const GET = statement("get_policy", `select ${COLUMNS} from pawl.policy where kind = $1 and name = $2`);
const LIST = statement("list_policies", `select ${COLUMNS} from pawl.policy where $1::text is null or kind = $1 order by kind, name`);
const STORE = statement(
  "store_policy",
  `insert into pawl.policy (kind, name, policy, version) values ($1, $2, $3::json, $4)
   on conflict (kind, name) do update set policy = excluded.policy, version = excluded.version`,
);
const REMOVE = statement("remove_policy", "delete from pawl.policy where kind = $1 and name = $2");
/** The bucket stays as it is: a changed rate gives nobody a full one. */
const LIMIT = statement(
  "limit_lanes",
  `insert into pawl.lane_limit (kind, name, concurrency, rate_limit, rate_per, rate_burst) values ($1, $2, $3, $4, $5, $6)
   on conflict (kind, name) do update set concurrency = excluded.concurrency, rate_limit = excluded.rate_limit,
     rate_per = excluded.rate_per, rate_burst = excluded.rate_burst`,
);
const UNLIMIT = statement("unlimit_lanes", "delete from pawl.lane_limit where kind = $1 and name = $2");
/**
 * What is remembered of ingest limits that are gone. All of them: a process that had not heard of the change may have
 * entered one again. In the order in which they are locked where room is taken.
 */
const FORGET_INGEST = statement(
  "forget_ingest",
  `delete from pawl.ingest where ctid = any(array(
     select i.ctid from pawl.ingest i
     where not exists (select from pawl.policy p where p.kind = i.kind and p.name = i.name and (p.policy->'ingest') is not null)
     order by i.kind, i.name for update
   ))`,
);

interface PolicyRow {
  readonly kind: PolicyKind;
  readonly name: string;
  readonly policy: string;
  readonly version: number;
}

export function postgresPolicies(db: Db, onChange: () => void): PolicyStore {
  return {
    async put(ref, policy, version) {
      const answer = await db.transaction((tx) => put(tx, ref, policy, version));
      if (answer === "stored") onChange();
      return answer;
    },
    async get({ kind, name }) {
      const [row] = await db.query<PolicyRow>(GET, [kind, name]);
      return row === undefined ? undefined : recordOf(row);
    },
    async list(kind) {
      // The version first: a change in between is then seen again.
      const [row] = await db.query<{ version: string }>(READ_POLICY_VERSION);
      return { version: row?.version ?? "0", policies: (await db.query<PolicyRow>(LIST, [kind ?? null])).map(recordOf) };
    },
  };
}

async function put(tx: DriverTransaction, { kind, name }: PolicyRef, policy: Policy, version: number): Promise<"stored" | "conflict"> {
  const [raised] = await tx.query<{ version: number }>(RAISE_POLICY_VERSION);
  const [before] = await tx.query<PolicyRow>(GET, [kind, name]);
  if ((before?.version ?? 0) !== version) return "conflict";
  if (isEmpty(policy)) await tx.query(REMOVE, [kind, name]);
  else await tx.query(STORE, [kind, name, JSON.stringify(policy), raised?.version]);
  const { concurrency, rate }: Limits = policy;
  if (isLimited(policy)) await tx.query(LIMIT, [kind, name, concurrency ?? null, rate?.limit ?? null, rate?.per ?? null, rate?.burst ?? null]);
  else await tx.query(UNLIMIT, [kind, name]);
  await tx.query(FORGET_INGEST);
  return "stored";
}

function recordOf({ kind, name, policy, version }: PolicyRow): PolicyRecord {
  return { kind, name, policy: JSON.parse(policy) as Policy, version } as PolicyRecord;
}
