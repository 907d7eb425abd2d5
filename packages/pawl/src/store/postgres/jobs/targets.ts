import { MAX_TARGETS, type OpenTarget, type TargetRecord, type TargetRef } from "../../../core/access/push-target.js";
import type { TargetStore } from "../../port/jobs/targets.js";
import { type Db, ms, NOW, statement } from "../connection/db.js";
import { readFor } from "../connection/tenant-role.js";
import type { DriverTransaction } from "../drivers/driver.js";
import { RAISE_POLICY_VERSION } from "../limits/policies.js";

const FACTS = `t.tenant, t.task, t.url, t.concurrency, t.timeout_ms, ${ms("t.created_at")} as created_at, ${ms("t.changed_at")} as changed_at,
  ${ms("t.gone_at")} as gone_at`;

const GET = statement("get_target", `select ${FACTS} from pawl.target t where t.tenant = $1 and t.task = $2`);
const LIST = statement(
  "list_targets",
  `select ${FACTS} from pawl.target t where ($1::text is null or t.tenant = $1) and ($2::text is null or (t.tenant, t.task) > ($2, $3))
   order by t.tenant, t.task limit $4`,
);
const COUNT = statement("count_targets", "select count(*) filter (where tenant = $1)::int as own, count(*)::int as total from pawl.target");
const CREATE = statement(
  "create_target",
  `with secret as (insert into pawl.target_secret (tenant, task, secret) values ($2, $3, $7))
   insert into pawl.target (tenant, task, url, concurrency, timeout_ms, created_at, changed_at) values ($2, $3, $4, $5, $6, ${NOW}, ${NOW})`,
);
const CHANGE = statement(
  "change_target",
  `update pawl.target set url = $4, concurrency = $5, timeout_ms = $6, gone_at = null, changed_at = ${NOW} where tenant = $2 and task = $3`,
);
const HAS_SECRET = statement("has_target_secret", "select 1 as one from pawl.target_secret where tenant = $1 and task = $2 and secret = $3");
/** All but the newest secret go; that one is good until its time; the new one takes its place. */
const ROTATE = statement(
  "rotate_target",
  `with gone as (delete from pawl.target_secret where tenant = $2 and task = $3 and until is not null),
   old as (update pawl.target_secret set until = ${NOW} + $5::float8 * interval '1 millisecond' where tenant = $2 and task = $3 and until is null)
   insert into pawl.target_secret (tenant, task, secret) values ($2, $3, $4)`,
);
const REMOVE = statement(
  "remove_target",
  `with secrets as (delete from pawl.target_secret where tenant = $1 and task = $2)
   delete from pawl.target where tenant = $1 and task = $2 returning task`,
);
const GONE = statement(
  "gone_target",
  `update pawl.target set gone_at = ${NOW} where tenant = $2 and task = $3 and url = $4 and gone_at is null returning task`,
);
const CLOCK = statement("clock_of_targets", `select ${ms(NOW)} as now`);
const OPEN = statement(
  "open_targets",
  `select ${FACTS}, s.secret, ${ms("s.until")} as until
   from (select * from pawl.target where gone_at is null order by tenant, task limit $2) t
   join pawl.target_secret s on s.tenant = t.tenant and s.task = t.task
   where s.until is null or s.until > ${NOW} order by t.tenant, t.task, s.until desc nulls first`,
);

interface TargetRow {
  readonly tenant: string;
  readonly task: string;
  readonly url: string;
  readonly concurrency: number;
  readonly timeout_ms: number;
  readonly created_at: number;
  readonly changed_at: number;
  readonly gone_at: number | null;
}
type OpenRow = TargetRow & { readonly secret: string; readonly until: number | null };

export function postgresTargets(db: Db, onChange: () => void): TargetStore {
  /** The version is a lock, too: changes of targets come one after the other. */
  async function change<T>(work: (tx: DriverTransaction) => Promise<T>): Promise<T> {
    const answer = await db.transaction(async (tx) => {
      await tx.query(RAISE_POLICY_VERSION);
      return work(tx);
    });
    onChange();
    return answer;
  }
  const find = async (tx: DriverTransaction, { tenant, task }: TargetRef) => {
    const [row] = await tx.query<TargetRow>(GET, [tenant, task]);
    return row === undefined ? undefined : factsOf(row);
  };

  return {
    put: ({ tenant, task, url, concurrency, timeout, secret }) =>
      change(async (tx) => {
        const values = [db.now(), tenant, task, url, concurrency, timeout];
        const existing = await find(tx, { tenant, task });
        if (existing === undefined) {
          const [count] = await tx.query<{ own: number; total: number }>(COUNT, [tenant]);
          if ((count?.own ?? 0) >= MAX_TARGETS.ofTenant) return { kind: "full", most: MAX_TARGETS.ofTenant } as const;
          if ((count?.total ?? 0) >= MAX_TARGETS.ofAll) return { kind: "full", most: MAX_TARGETS.ofAll } as const;
          await tx.query(CREATE, [...values, secret]);
        } else if (existing.url !== url || existing.concurrency !== concurrency || existing.timeout !== timeout || existing.goneAt !== undefined)
          await tx.query(CHANGE, values);
        return { kind: existing === undefined ? "created" : "kept", target: (await find(tx, { tenant, task })) as TargetRecord } as const;
      }),
    async get(scope, { tenant, task }) {
      if (scope !== "everyone" && scope.tenant !== tenant) return undefined;
      const [row] = await readFor(db, scope, (on) => on.query<TargetRow>(GET, [tenant, task]));
      return row === undefined ? undefined : factsOf(row);
    },
    async list(scope, { limit, after }) {
      const tenant = scope === "everyone" ? null : scope.tenant;
      const rows = await readFor(db, scope, (on) => on.query<TargetRow>(LIST, [tenant, after?.tenant ?? null, after?.task ?? null, limit]));
      return rows.map(factsOf);
    },
    rotate: ({ tenant, task }, { secret, keepOldFor }) =>
      change(async (tx) => {
        const existing = await find(tx, { tenant, task });
        if (existing !== undefined && (await tx.query(HAS_SECRET, [tenant, task, secret])).length === 0)
          await tx.query(ROTATE, [db.now(), tenant, task, secret, keepOldFor]);
        return existing;
      }),
    delete: ({ tenant, task }) => change(async (tx) => (await tx.query(REMOVE, [tenant, task])).length > 0),
    gone: ({ tenant, task }, url) => change(async (tx) => void (await tx.query(GONE, [db.now(), tenant, task, url]))),
    async open(limit) {
      const rows = await db.query<OpenRow>(OPEN, [db.now(), limit]);
      const [clock] = await db.query<{ now: number }>(CLOCK, [db.now()]);
      return { now: clock?.now ?? 0, targets: opened(rows) };
    },
  };
}

/** Rows of one target stand together, its newest secret first. */
function opened(rows: readonly OpenRow[]): readonly OpenTarget[] {
  const targets: OpenTarget[] = [];
  for (const row of rows) {
    const secret = { text: row.secret, ...(row.until === null ? {} : { until: row.until }) };
    const last = targets.at(-1);
    if (last?.tenant === row.tenant && last.task === row.task) targets[targets.length - 1] = { ...last, secrets: [...last.secrets, secret] };
    else targets.push({ ...factsOf(row), secrets: [secret] });
  }
  return targets;
}

function factsOf({ tenant, task, url, concurrency, timeout_ms, created_at, changed_at, gone_at }: TargetRow): TargetRecord {
  return {
    tenant,
    task,
    url,
    concurrency,
    timeout: timeout_ms,
    createdAt: created_at,
    changedAt: changed_at,
    ...(gone_at === null ? {} : { goneAt: gone_at }),
  };
}
