import type { InstanceId } from "../../../core/jobs/id.js";
import type { Serves } from "../../../core/limits/capacity.js";
import type { WorkerStore } from "../../port/claim/workers.js";
import type { WorkerIds } from "../claim/worker-ids.js";
import { type Db, ms, NOW, statement } from "../connection/db.js";

/** Rows of those who vanished go when somebody else gives a sign of life: there are few, and nobody waits for it. */
const PUBLISH = statement(
  "publish_live_worker",
  `with silent as (
     delete from pawl.live_worker s where s.ctid = any(array(
       select o.ctid from pawl.live_worker o where o.until <= ${NOW} and o.worker <> $2::int for update skip locked)))
   insert into pawl.live_worker as s (worker, since, until, serves) values ($2::int, ${NOW}, ${NOW} + $3::float8 * interval '1 ms', $4::json)
   on conflict (worker) do update set until = excluded.until, serves = excluded.serves,
     since = case when s.until <= ${NOW} then excluded.since else s.since end`,
);

const RETIRE = statement("retire_live_worker", "delete from pawl.live_worker where worker = $1::int");

const LIVE = statement(
  "live_workers",
  `select w.name, w.instance, s.serves::text as serves, ${ms("s.since")} as since, ${ms("s.until")} as until
   from pawl.live_worker s join pawl.worker w on w.id = s.worker where s.until > ${NOW} order by w.name collate "C", w.instance`,
);

interface LiveWorkerRow {
  readonly name: string;
  readonly instance: InstanceId;
  readonly serves: string;
  readonly since: number;
  readonly until: number;
}

export function postgresWorkers(db: Db, workers: WorkerIds): WorkerStore {
  return {
    async publish(worker, serves, duration) {
      await db.query(PUBLISH, [db.now(), await workers.id(worker), duration, JSON.stringify(serves)]);
    },
    async retire(worker) {
      await db.query(RETIRE, [await workers.id(worker)]);
    },
    async live() {
      const rows = await db.query<LiveWorkerRow>(LIVE, [db.now()]);
      return rows.map(({ name, instance, serves, since, until }) => ({ name, instance, serves: JSON.parse(serves) as Serves, since, until }));
    },
  };
}
