import type { Serves } from "../../core/capacity.js";
import type { BootId } from "../../core/id.js";
import type { WorkerStore } from "../port-workers.js";
import { type Db, ms, NOW, statement } from "./db.js";
import type { Workers } from "./workers.js";

/** Rows of those who vanished go when somebody else gives a sign of life: there are few, and nobody waits for it. */
const PUBLISH = statement(
  "publish_serving",
  `with silent as (
     delete from pawl.serving s where s.ctid = any(array(
       select o.ctid from pawl.serving o where o.until <= ${NOW} and o.worker <> $2::int for update skip locked)))
   insert into pawl.serving as s (worker, since, until, serves) values ($2::int, ${NOW}, ${NOW} + $3::float8 * interval '1 ms', $4::json)
   on conflict (worker) do update set until = excluded.until, serves = excluded.serves,
     since = case when s.until <= ${NOW} then excluded.since else s.since end`,
);

const RETIRE = statement("retire_serving", "delete from pawl.serving where worker = $1::int");

const LIVE = statement(
  "live_serving",
  `select w.name, w.boot, s.serves::text as serves, ${ms("s.since")} as since, ${ms("s.until")} as until
   from pawl.serving s join pawl.worker w on w.id = s.worker where s.until > ${NOW} order by w.name collate "C", w.boot`,
);

interface LiveRow {
  readonly name: string;
  readonly boot: BootId;
  readonly serves: string;
  readonly since: number;
  readonly until: number;
}

export function postgresWorkers(db: Db, workers: Workers): WorkerStore {
  return {
    async publish(worker, serves, duration) {
      await db.query(PUBLISH, [db.now(), await workers.id(worker), duration, JSON.stringify(serves)]);
    },
    async retire(worker) {
      await db.query(RETIRE, [await workers.id(worker)]);
    },
    async live() {
      const rows = await db.query<LiveRow>(LIVE, [db.now()]);
      return rows.map(({ name, boot, serves, since, until }) => ({ name, boot, serves: JSON.parse(serves) as Serves, since, until }));
    },
  };
}
