/** A job's id: a UUIDv7 whose time is the job's due time (see `jobId`), so history is partitioned by it. */
export type JobId = string & { readonly __job: unique symbol };
/** One life of one worker process. A restarted worker has a new boot id, so nothing it held before is its own. */
export type BootId = string & { readonly __boot: unique symbol };
/** A lease's number. It only grows, and is the fence of every write made under it. */
export type LeaseId = string & { readonly __lease: unique symbol };

/** The random part of an id, chosen by the caller: 20 hex digits, the first of them the version and variant. */
export type IdTail = string & { readonly __tail: unique symbol };

export type RandomBytes = (size: number) => Uint8Array;

const HEX: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/**
 * Makes tails out of random bytes drawn in bulk (one system call per 400 ids instead of one per id).
 * A tail is what follows the time in a UUIDv7: `7rrr`, `[89ab]rrr`, `rrrrrrrrrrrr`, without the dashes.
 */
export function tailSource(random: RandomBytes): () => IdTail {
  const TAIL_BYTES = 10;
  let pool: Uint8Array = new Uint8Array(0);
  let next = 0;
  return () => {
    if (next + TAIL_BYTES > pool.length) {
      pool = random(TAIL_BYTES * 400);
      next = 0;
    }
    let tail = HEX[0x70 | ((pool[next] as number) & 0x0f)] as string;
    tail += HEX[pool[next + 1] as number] as string;
    tail += HEX[0x80 | ((pool[next + 2] as number) & 0x3f)] as string;
    for (let i = 3; i < TAIL_BYTES; i++) tail += HEX[pool[next + i] as number] as string;
    next += TAIL_BYTES;
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

/** The caller's part of an id. */
export function tailOf(id: JobId): IdTail {
  return (id.slice(14, 18) + id.slice(19, 23) + id.slice(24)) as IdTail;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export function isJobId(text: string): text is JobId {
  return UUID.test(text);
}
