import { newInstanceId } from "../../../runtime/process/identity.js";
import { systemClock } from "../../../runtime/time/clock.js";
import type { Queryable } from "../drivers/driver.js";
import { type Db, NOW, statement } from "./db.js";

/** A duty while it is ours alone. */
export interface HeldDuty {
  /** the last note of a holder before */
  readonly progress: string | undefined;
  /** Notes how far it is. Throws if the duty is no longer ours. */
  saveProgress(progress: string): Promise<void>;
  /** First in a transaction: from here to its end the duty is ours, or it throws. */
  lock(tx: Queryable): Promise<void>;
}

/** ms after which a duty is free again whose holder was killed; a living one renews it three times in that. */
const DURATION_MS = 60_000;

const TAKE = statement(
  "take_duty",
  `insert into pawl.duty as d (name, holder, until) values ($2, $3::uuid, ${NOW} + ${DURATION_MS} * interval '1 millisecond')
   on conflict (name) do update set holder = excluded.holder, until = excluded.until
     where d.holder is null or d.until <= ${NOW}  -- guard: duty-is-free
   returning progress`,
);
const RENEW = statement(
  "renew_duty",
  `update pawl.duty set until = ${NOW} + ${DURATION_MS} * interval '1 millisecond', progress = coalesce($4, progress) where name = $2 and holder = $3::uuid returning name`,
);
const LOCK_DUTY = statement("lock_duty", "select name from pawl.duty where name = $1 and holder = $2::uuid for update");
const FREE = statement("free_duty", "update pawl.duty set holder = null where name = $1 and holder = $2::uuid");

class DutyLost extends Error {}

/**
 * Does something that no two processes may do at once, or answers undefined if another one is at it. A row with an end,
 * not a lock of the session: so it works through a pooler, and one whose holder was killed is free after a minute.
 */
export async function exclusively<T>(db: Db, name: string, work: (duty: HeldDuty) => Promise<T>): Promise<T | undefined> {
  const holder = newInstanceId();
  const [taken] = await db.query<{ progress: string | null }>(TAKE, [db.now(), name, holder]);
  if (taken === undefined) return undefined;
  const renew = async (progress?: string) => {
    const rows = await db.query(RENEW, [db.now(), name, holder, progress ?? null]);
    if (rows.length === 0) throw new DutyLost(name);
  };
  let over = false;
  let cancel = () => {};
  const renewLater = () => {
    // One that fails is tried again in time; one that finds the duty lost leaves it to the fence to say so.
    if (!over) cancel = systemClock.after(DURATION_MS / 3, () => void renew().then(renewLater, renewLater));
  };
  renewLater();
  try {
    return await work({
      progress: taken.progress ?? undefined,
      saveProgress: renew,
      async lock(tx) {
        if ((await tx.query(LOCK_DUTY, [name, holder])).length === 0) throw new DutyLost(name);
      },
    });
  } catch (error) {
    // Another one has gone on with it since this process stood still: then nothing here is as it was.
    const lost = (cause: unknown) => cause instanceof DutyLost;
    if (lost(error) || (await renew().then(() => false, lost))) return undefined;
    throw error;
  } finally {
    over = true;
    cancel();
    // If it cannot be told now, the end of its time will.
    await db.query(FREE, [name, holder]).catch(() => {});
  }
}
