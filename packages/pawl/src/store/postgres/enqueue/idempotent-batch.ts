import type { JobId } from "../../../core/jobs/id.js";
import type { Enqueued, NewJob } from "../../../core/jobs/job.js";
import { DEFAULTS } from "../../../core/values/defaults.js";
import type { BatchRequest, KnownBatch } from "../../port/enqueue/batches.js";
import { plainArray } from "../connection/arrays.js";
import { type Db, NOW, statement, type WriteTransaction } from "../connection/db.js";
import type { Queryable } from "../drivers/driver.js";
import { enqueuePlain } from "./enqueue.js";
import { enqueueMixed, needsChecks } from "./enqueue-mixed.js";

/** Takes the idempotency key before anything is stored: whoever meets it waits, and then finds what became of it. */
const BEGIN_BATCH = statement(
  "begin_batch",
  `insert into pawl.idempotent_batch as b (tenant, id, digest, note, until) values ($2, $3, $4, $5, ${NOW} + $6::float8 * interval '1 millisecond')
   on conflict (tenant, id) do update set digest = excluded.digest, note = excluded.note, until = excluded.until, jobs = null, kinds = null, replaced = null
     where b.until <= ${NOW}  -- guard: batch-key-is-over
   returning 1 as one`,
);
const SAVE_BATCH = statement(
  "save_batch",
  "update pawl.idempotent_batch set jobs = $3::uuid[], kinds = $4, replaced = $5::uuid[] where tenant = $1 and id = $2",
);
const READ_BATCH = statement(
  "look_batch",
  `select digest, note, array_to_string(jobs, ',') as jobs, kinds, array_to_string(replaced, ',', '') as replaced from pawl.idempotent_batch where tenant = $2 and id = $3 and until > ${NOW}`,
);

interface IdempotentBatchRow {
  readonly digest: string;
  readonly note: string | null;
  /** ids with commas between them; of `replaced`, most are empty */
  readonly jobs: string;
  readonly kinds: string | null;
  readonly replaced: string | null;
}

/** What was stored now, or what is known of it. */
type OnceResult = { readonly kind: "stored"; readonly answers: readonly Enqueued[]; readonly now: number } | KnownBatch;

/** Jobs of any kind, once. */
export async function enqueueOnce(db: Db, tx: WriteTransaction, request: BatchRequest, jobs: readonly NewJob[], perRow: number): Promise<OnceResult> {
  const { tenant, id, digest, note } = request;
  while ((await tx.query(BEGIN_BATCH, [db.now(), tenant, id, digest, note ?? null, DEFAULTS.keep.idempotencyKey])).length === 0) {
    const earlier = await findBatch(db, tx, request);
    if (earlier !== undefined) return earlier;
  }
  const stored = jobs.some(needsChecks) ? await enqueueMixed(db, tx, jobs, perRow) : await enqueuePlain(db, tx, jobs, perRow);
  await tx.query(SAVE_BATCH, [tenant, id, ...encodeAnswers(stored.answers)]);
  return { kind: "stored", ...stored };
}

export async function findBatch(db: Db, on: Queryable, { tenant, id, digest }: BatchRequest): Promise<KnownBatch | undefined> {
  const [row] = await on.query<IdempotentBatchRow>(READ_BATCH, [db.now(), tenant, id]);
  if (row === undefined) return undefined;
  if (row.digest !== digest) return { kind: "different" };
  return { kind: "repeated", answers: answersOf(row), ...(row.note === null ? {} : { note: row.note }) };
}

const KIND_LETTERS = { created: "c", existing: "e", rejected: "r", dependencyUnknown: "o", idempotencyKeyReused: "u" } as const satisfies Record<
  Enqueued["kind"],
  string
>;

/** The job that each answer names, and what most batches need not say: that one was not created, or took another's place. */
function encodeAnswers(answers: readonly Enqueued[]): readonly [jobs: string, kinds: string | null, replaced: string | null] {
  const replaced = answers.map((answer) => (answer.kind === "created" ? answer.replaced : undefined));
  return [
    plainArray(answers.map(jobIn)),
    answers.every(({ kind }) => kind === "created") ? null : answers.map(({ kind }) => KIND_LETTERS[kind]).join(""),
    replaced.every((job) => job === undefined) ? null : plainArray(replaced),
  ];
}

function jobIn(answer: Enqueued): JobId {
  switch (answer.kind) {
    case "created":
    case "existing":
      return answer.id;
    case "rejected":
      return answer.holder;
    case "dependencyUnknown":
      return answer.parent;
    case "idempotencyKeyReused":
      return answer.first;
  }
}

function answersOf({ jobs, kinds, replaced }: IdempotentBatchRow): readonly Enqueued[] {
  const others = idsIn(replaced ?? "");
  return idsIn(jobs).map((job, index): Enqueued => {
    switch (kinds?.[index]) {
      case KIND_LETTERS.existing:
        return { kind: "existing", id: job };
      case KIND_LETTERS.rejected:
        return { kind: "rejected", holder: job };
      case KIND_LETTERS.dependencyUnknown:
        return { kind: "dependencyUnknown", parent: job };
      case KIND_LETTERS.idempotencyKeyReused:
        return { kind: "idempotencyKeyReused", first: job };
      default: {
        const other = others[index] ?? "";
        return other === "" ? { kind: "created", id: job } : { kind: "created", id: job, replaced: other };
      }
    }
  });
}

function idsIn(text: string): readonly JobId[] {
  return text.split(",").map((id) => id as JobId);
}
