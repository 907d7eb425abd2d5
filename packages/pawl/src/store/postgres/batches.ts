import { DEFAULTS } from "../../core/defaults.js";
import type { JobId } from "../../core/id.js";
import type { Enqueued, NewJob } from "../../core/job.js";
import type { BatchRequest, KnownBatch } from "../port-batches.js";
import { plainArray } from "./arrays.js";
import { type Db, NOW, statement } from "./db.js";
import type { Queryable, Transaction } from "./drivers/driver.js";
import { enqueuePlain } from "./enqueue.js";
import { enqueueApart, isGuarded } from "./enqueue-apart.js";

/** Takes the request id before anything is stored: whoever meets it waits, and then finds what became of it. */
const BEGIN = statement(
  "begin_batch",
  `insert into pawl.batch as b (tenant, id, digest, note, until) values ($2, $3, $4, $5, ${NOW} + $6::float8 * interval '1 millisecond')
   on conflict (tenant, id) do update set digest = excluded.digest, note = excluded.note, until = excluded.until, jobs = null, fates = null, replaced = null
     where b.until <= ${NOW}
   returning 1 as one`,
);
const SAVE = statement("save_batch", "update pawl.batch set jobs = $3::uuid[], fates = $4, replaced = $5::uuid[] where tenant = $1 and id = $2");
const LOOK = statement(
  "look_batch",
  `select digest, note, array_to_string(jobs, ',') as jobs, fates, array_to_string(replaced, ',', '') as replaced from pawl.batch where tenant = $2 and id = $3 and until > ${NOW}`,
);

interface Row {
  readonly digest: string;
  readonly note: string | null;
  /** ids with commas between them; of `replaced`, most are empty */
  readonly jobs: string;
  readonly fates: string | null;
  readonly replaced: string | null;
}

/** What was stored now, or what is known of it. */
type Once = { readonly kind: "stored"; readonly answers: readonly Enqueued[]; readonly now: number } | KnownBatch;

/** Jobs of any kind, once. */
export async function enqueueOnce(db: Db, tx: Transaction, request: BatchRequest, jobs: readonly NewJob[], perRow: number): Promise<Once> {
  const { tenant, id, digest, note } = request;
  while ((await tx.query(BEGIN, [db.now(), tenant, id, digest, note ?? null, DEFAULTS.keep.request])).length === 0) {
    const known = await findBatch(db, tx, request);
    if (known !== undefined) return known;
  }
  const stored = jobs.some(isGuarded) ? await enqueueApart(db, tx, jobs, perRow) : await enqueuePlain(db, tx, jobs, perRow);
  await tx.query(SAVE, [tenant, id, ...kept(stored.answers)]);
  return { kind: "stored", ...stored };
}

export async function findBatch(db: Db, on: Queryable, { tenant, id, digest }: BatchRequest): Promise<KnownBatch | undefined> {
  const [row] = await on.query<Row>(LOOK, [db.now(), tenant, id]);
  if (row === undefined) return undefined;
  if (row.digest !== digest) return { kind: "different" };
  return { kind: "repeated", answers: answersOf(row), ...(row.note === null ? {} : { note: row.note }) };
}

const FATES = { created: "c", existing: "e", rejected: "r", orphaned: "o", requestReused: "u" } as const satisfies Record<Enqueued["kind"], string>;

/** The job that each answer names, and what most batches need not say: that one was not created, or took another's place. */
function kept(answers: readonly Enqueued[]): readonly [jobs: string, fates: string | null, replaced: string | null] {
  const replaced = answers.map((answer) => (answer.kind === "created" ? answer.replaced : undefined));
  return [
    plainArray(answers.map(jobIn)),
    answers.every(({ kind }) => kind === "created") ? null : answers.map(({ kind }) => FATES[kind]).join(""),
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
    case "orphaned":
      return answer.parent;
    case "requestReused":
      return answer.first;
  }
}

function answersOf({ jobs, fates, replaced }: Row): readonly Enqueued[] {
  const others = idsIn(replaced ?? "");
  return idsIn(jobs).map((job, place): Enqueued => {
    switch (fates?.[place]) {
      case FATES.existing:
        return { kind: "existing", id: job };
      case FATES.rejected:
        return { kind: "rejected", holder: job };
      case FATES.orphaned:
        return { kind: "orphaned", parent: job };
      case FATES.requestReused:
        return { kind: "requestReused", first: job };
      default: {
        const other = others[place] ?? "";
        return other === "" ? { kind: "created", id: job } : { kind: "created", id: job, replaced: other };
      }
    }
  });
}

function idsIn(text: string): readonly JobId[] {
  return text.split(",").map((id) => id as JobId);
}
