import type { JobId } from "../../core/id.js";
import { isFinished } from "../../core/job.js";
import type { Lane } from "../../core/lane.js";
import { plainArray } from "./arrays.js";
import { end } from "./control.js";
import { count } from "./counts.js";
import { type Db, statement } from "./db.js";
import { readFacts } from "./facts.js";
import { put, take } from "./pending.js";
import { vacate } from "./tickets.js";

const ASKED = statement("asked", "select job, kind, reason from pawl.intent where job > $2::uuid order by job limit $1 for update skip locked");
const FORGET = statement("forget_asked", "delete from pawl.intent where job = any($1::uuid[])");

/** Intents whose jobs no worker holds: a settlement passed by while they were being written. */
export async function carryOut(db: Db, limit: number): Promise<{ count: number; readied: readonly Lane[] }> {
  const readied: Lane[] = [];
  let carried = 0;
  let after = "00000000-0000-0000-0000-000000000000";
  for (;;) {
    const asked = await db.transaction(async (tx) => {
      const rows = await tx.query<{ job: JobId; kind: "cancel" | "pause"; reason: string | null }>(ASKED, [limit, after]);
      const ids = rows.map((row) => row.job);
      const states = new Map((await readFacts(tx, ids)).map(({ id, state }) => [id, state]));
      const over: JobId[] = [];
      for (const { job: id, kind, reason } of rows) {
        const state = states.get(id);
        if (state === "running" || (state === "blocked" && kind === "pause")) continue;
        if (state !== undefined && !isFinished(state)) {
          const [job] = await take(tx, [id]);
          // It was claimed or moved since it was looked at: the next call looks again.
          if (job === undefined) continue;
          if (kind === "cancel") readied.push(...(await end(db, tx, job, "cancelled", reason ?? "cancelled")));
          else {
            await vacate(db, tx, [id], { finished: false });
            await put(db, tx, [{ ...job, to: "parked" }]);
            await count(tx, [{ lane: job.lane, from: job.state, to: "parked" }]);
          }
          carried++;
        }
        over.push(id);
      }
      await tx.query(FORGET, [plainArray(over)]);
      return rows;
    });
    if (asked.length < limit) return { count: carried, readied };
    after = (asked.at(-1) as { job: JobId }).job;
  }
}
