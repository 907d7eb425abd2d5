import type { PolicyKind, PolicyRef } from "../../../core/sharing/policy.js";
import { type Db, statement } from "../connection/db.js";

const PAUSE = statement("pause_lanes", "insert into pawl.pause (kind, name) values ($1, $2) on conflict do nothing");
const RESUME = statement("resume_lanes", "delete from pawl.pause where kind = $1 and name = $2");
const PAUSED = statement("paused_lanes", "select kind, name from pawl.pause order by kind, name");

/** Every claim that begins after this commits reads the table and leaves those lanes alone. */
export async function pauseLanes(db: Db, kind: PolicyKind, name: string): Promise<void> {
  await db.query(PAUSE, [kind, name]);
}

export async function resumeLanes(db: Db, kind: PolicyKind, name: string): Promise<void> {
  await db.query(RESUME, [kind, name]);
}

export async function pausedLanes(db: Db): Promise<readonly PolicyRef[]> {
  return db.query<{ kind: PolicyKind; name: string }>(PAUSED);
}
