/** A job's id: a UUIDv7 whose time is the job's due time (see `jobId`), so history is partitioned by it. */
export type JobId = string & { readonly __job: unique symbol };
/** One life of one worker process. A restarted worker has a new boot id, so nothing it held before is its own. */
export type BootId = string & { readonly __boot: unique symbol };
/** A lease's number. It only grows, and is the fence of every write made under it. */
export type LeaseId = string & { readonly __lease: unique symbol };

/** The caller's part of an id: 20 hex digits, the first of them the version and a counter, the rest random but for the variant. */
export type IdTail = string & { readonly __tail: unique symbol };

export type RandomBytes = (size: number) => Uint8Array;

const HEX: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/**
 * Makes tails out of random bytes drawn in bulk (one system call per 500 ids instead of one per id).
 * A tail is what follows the time in a UUIDv7: `7ccc`, `[89ab]rrr`, `rrrrrrrrrrrr`, without the dashes. `ccc` counts: of jobs
 * enqueued together each comes after the one before, so that the index of ids grows at its end and not all over.
 */
export function tailSource(random: RandomBytes): () => IdTail {
  const RANDOM_BYTES = 8;
  let pool: Uint8Array = new Uint8Array(0);
  let next = 0;
  let count = 0;
  return () => {
    if (next + RANDOM_BYTES > pool.length) {
      pool = random(RANDOM_BYTES * 500);
      next = 0;
    }
    let tail = (HEX[0x70 | (count >> 8)] as string) + (HEX[count & 0xff] as string);
    tail += HEX[0x80 | ((pool[next] as number) & 0x3f)] as string;
    for (let i = 1; i < RANDOM_BYTES; i++) tail += HEX[pool[next + i] as number] as string;
    next += RANDOM_BYTES;
    count = (count + 1) & 0xfff;
    return tail as IdTail;
  };
}

/** The id of a job due at `due` (ms). Stores do the same with their own clock; this is the one definition of it. */
export function jobId(due: number, tail: IdTail): JobId {
  return idsDueAt(due)(tail);
}

/** The same for many jobs that are due at one moment. */
export function idsDueAt(due: number): (tail: IdTail) => JobId {
  const time = Math.max(0, Math.floor(due)).toString(16).padStart(12, "0");
  const start = `${time.slice(0, 8)}-${time.slice(8)}-`;
  return (tail) => `${start}${tail.slice(0, 4)}-${tail.slice(4, 8)}-${tail.slice(8)}` as JobId;
}

/** The smallest id there can be of a job due at that time. */
export function firstIdAt(due: number): JobId {
  return idsDueAt(due)("0".repeat(20) as IdTail);
}

export function dueTimeOf(id: JobId): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

/** The same for many jobs, of which those next to each other are mostly due at one moment. */
export function dueTimes(): (id: JobId) => number {
  let start: string | undefined;
  let due = 0;
  return (id) => {
    if (start === undefined || !id.startsWith(start)) {
      start = id.slice(0, 13);
      due = dueTimeOf(id);
    }
    return due;
  };
}

/** The caller's part of an id. */
export function tailOf(id: JobId): IdTail {
  return (id.slice(14, 18) + id.slice(19, 23) + id.slice(24)) as IdTail;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export function isJobId(text: string): text is JobId {
  return UUID.test(text);
}
