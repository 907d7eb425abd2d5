import type { JobId } from "../../../core/jobs/id.js";
import { isFinished } from "../../../core/jobs/job.js";
import type { Lane } from "../../../core/jobs/lane.js";
import { plainArray } from "../connection/arrays.js";
import { type StoreDb, statement } from "../connection/db.js";
import { endWaiting } from "../jobs/control.js";
import { count } from "../jobs/counters.js";
import { readFacts } from "../jobs/job-state.js";
import { putWaiting, takeWaiting } from "../jobs/waiting-jobs.js";
import { releaseSlots } from "../limits/job-limits.js";

const READ_INTENTS = statement(
  "asked",
  "select job, kind, reason from pawl.intent where job > $2::uuid order by job limit $1 for update skip locked",
);
const DELETE_INTENTS = statement("forget_asked", "delete from pawl.intent where job = any($1::uuid[])");

/** Intents whose jobs no worker holds: a settlement passed by while they were being written. */
export async function carryOutIntents(db: StoreDb, limit: number): Promise<{ count: number; readied: readonly Lane[] }> {
  const readied: Lane[] = [];
  let carriedOut = 0;
  let after = "00000000-0000-0000-0000-000000000000";
  for (;;) {
    const intents = await db.transaction(async (tx) => {
      const rows = await tx.query<{ job: JobId; kind: "cancel" | "pause"; reason: string | null }>(READ_INTENTS, [limit, after]);
      const ids = rows.map((row) => row.job);
      const states = new Map((await readFacts(tx, ids)).map(({ id, state }) => [id, state]));
      const over: JobId[] = [];
      for (const { job: id, kind, reason } of rows) {
        const state = states.get(id);
        if (state === "running" || (state === "blocked" && kind === "pause")) continue;
        if (state !== undefined && !isFinished(state)) {
          const [job] = await takeWaiting(tx, [id]);
          // It was claimed or moved since it was looked at: the next call looks again.
          if (job === undefined) continue;
          if (kind === "cancel") readied.push(...(await endWaiting(db, tx, job, "cancelled", reason ?? "cancelled")));
          else {
            await releaseSlots(db, tx, [id], { finished: false });
            await putWaiting(db, tx, [{ ...job, to: "parked" }]);
            await count(tx, [{ lane: job.lane, from: job.state, to: "parked" }]);
          }
          carriedOut++;
        }
        over.push(id);
      }
      await tx.query(DELETE_INTENTS, [plainArray(over)]);
      return rows;
    });
    if (intents.length < limit) return { count: carriedOut, readied };
    after = (intents.at(-1) as { job: JobId }).job;
  }
}
