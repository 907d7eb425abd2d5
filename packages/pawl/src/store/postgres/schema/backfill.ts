import { systemClock } from "../../../runtime/time/clock.js";
import { type Db, renameSchema, statement } from "../connection/db.js";

/** The part of a migration that moves rows, in batches: see CONTRIBUTING.md, "Add a migration". */
export interface Backfill {
  readonly number: number;
  readonly name: string;
  /** one statement: `$1` the cursor (null at the start), `$2` most rows; answers `moved` and the next `cursor`, null at the end */
  readonly batch: string;
}

export interface BackfillProgress {
  readonly migration: string;
  /** rows so far, by whichever process */
  readonly moved: number;
}

/** ms a batch should take: its locks are held for no longer, and as long again everybody else has the store for himself. */
const AIM_MS = 40;
const FIRST_ROWS = 200;
/** On a machine too busy for that, it must come to an end all the same. */
const MIN_ROWS = 50;
const MAX_ROWS = 5_000;
/** ms a batch waits for rows in use. Then it lets go of what it has and tries again. */
const LOCK_PATIENCE = 50;

const LOCK = statement("lock_backfill", "select cursor, moved::float8 as moved from pawl.backfill where number = $1 for update");
const ADVANCE = statement("advance_backfill", "update pawl.backfill set cursor = $2, moved = moved + $3 where number = $1");
const FINISH = statement("finish_backfill", "delete from pawl.backfill where number = $1");

/**
 * Moves what is left to move, batch by batch. Each is a transaction that also notes how far it got, so that whoever
 * comes next goes on there: after a kill, or in another process at the same time.
 */
export async function backfill(db: Db, step: Backfill, onProgress?: (progress: BackfillProgress) => void): Promise<void> {
  const migration = `${String(step.number).padStart(4, "0")}_${step.name}`;
  for (let size = FIRST_ROWS; ; ) {
    const began = systemClock.monotonic();
    const moved = await moveSome(db, step, size);
    if (moved === "over") return;
    const took = systemClock.monotonic() - began;
    if (moved !== "in use") {
      onProgress?.({ migration, moved });
      if (took > 2 * AIM_MS) size = Math.max(MIN_ROWS, Math.floor(size / 2));
      else if (took < AIM_MS / 2) size = Math.min(MAX_ROWS, size * 2);
    }
    await rest(took);
  }
}

async function moveSome(db: Db, { number, batch }: Backfill, size: number): Promise<number | "over" | "in use"> {
  try {
    return await db.transaction(async (tx) => {
      await tx.run("set local statement_timeout = 0");
      // The others who migrate are waited for, the rows in use only shortly.
      const [row] = await tx.query<{ cursor: string | null; moved: number }>(LOCK, [number]);
      if (row === undefined) return "over";
      await tx.run(`set local lock_timeout = ${LOCK_PATIENCE}`);
      const { rows } = await tx.run(renameSchema(batch, db.schema), [row.cursor, size]);
      const [{ moved, cursor }] = rows as unknown as [{ moved: number; cursor: string | null }];
      if (cursor === null) {
        await tx.query(FINISH, [number]);
        return "over";
      }
      await tx.query(ADVANCE, [number, cursor, moved]);
      return row.moved + moved;
    });
  } catch (error) {
    if ((error as { code?: unknown }).code === "55P03") return "in use";
    throw error;
  }
}

function rest(ms: number): Promise<void> {
  return new Promise((resolve) => systemClock.after(Math.max(1, ms), resolve));
}
