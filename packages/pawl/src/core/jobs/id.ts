import { hash32 } from "../values/hash.js";

/** A job's id: a UUIDv7 whose time is the job's due time (see `jobId`), so history is partitioned by it. */
export type JobId = string & { readonly __job: unique symbol };
/** One life of one worker process. A restarted worker has a new instance id, so nothing it held before is its own. */
export type InstanceId = string & { readonly __instance: unique symbol };
/** A lease's number. It only grows, and is the fence of every write made under it. */
export type LeaseId = string & { readonly __lease: unique symbol };

/** The caller's part of an id, as it stands there: the version and a counter, then random digits but for the variant. */
export type IdSuffix = string & { readonly __idSuffix: unique symbol };

export type RandomBytes = (size: number) => Uint8Array;
/** Makes the id suffix of the id of a tenant's next job. */
export type IdSuffixSource = (tenant: string) => IdSuffix;

/** Tenants fall into so many shards: as many as ten bits of a id suffix tell apart. */
const SHARDS = 1_024;

const DASH = 0x2d;

/** The code of a hex digit. */
function digit(value: number): number {
  return value < 10 ? 0x30 + value : 0x57 + value;
}

/**
 * Makes id suffixes out of random bytes drawn in bulk (one system call per 500 ids instead of one per id).
 * A id suffix is what follows the time in a UUIDv7: `7ccc-[89ab]ssr-rrrrrrrrrrrr`. `ccc` counts: of jobs enqueued together each comes
 * after the one before, so that the index of ids grows at its end and not all over. The two low bits of `[89ab]` and `ss` are the tenant's
 * shard: an id alone tells where its tenant's jobs are, for a store that is spread over several servers. `r` are 52 random bits.
 *
 * It is made of codes at once: one put together out of pieces is kept as a tree of them, four times its size, which is most
 * of what is left to the garbage collector when thousands are enqueued.
 */
export function idSuffixSource(random: RandomBytes): IdSuffixSource {
  const RANDOM_BYTES = 7;
  let pool: Uint8Array = new Uint8Array(0);
  let next = 0;
  let count = 0;
  // Jobs that are stored together are mostly of one tenant.
  let tenant = "";
  let shard = shardOfTenant(tenant);
  const high = (n: number) => (pool[next + n] as number) >> 4;
  const low = (n: number) => (pool[next + n] as number) & 15;
  return (of) => {
    if (of !== tenant) {
      tenant = of;
      shard = shardOfTenant(of);
    }
    if (next + RANDOM_BYTES > pool.length) {
      pool = random(RANDOM_BYTES * 500);
      next = 0;
    }
    // biome-ignore format: by the groups of an id
    const idSuffix = String.fromCharCode(
      digit(7), digit(count >> 8), digit((count >> 4) & 15), digit(count & 15), DASH,
      digit(8 | (shard >> 8)), digit((shard >> 4) & 15), digit(shard & 15), digit(high(0)), DASH,
      digit(high(1)), digit(low(1)), digit(high(2)), digit(low(2)), digit(high(3)), digit(low(3)),
      digit(high(4)), digit(low(4)), digit(high(5)), digit(low(5)), digit(high(6)), digit(low(6)),
    );
    next += RANDOM_BYTES;
    count = (count + 1) & 0xfff;
    return idSuffix as IdSuffix;
  };
}

/** The shard of a tenant, from 0 to 1,023. It is in the ids of all its jobs, so it can never change. */
export function shardOfTenant(tenant: string): number {
  return hash32(tenant) % SHARDS;
}

/** The same, out of the id of one of its jobs. */
export function shardOf(id: JobId): number {
  return Number.parseInt(id.slice(19, 22), 16) % SHARDS;
}

/** The id of a job due at `due` (ms). Stores do the same with their own clock; this is the one definition of it. */
export function jobId(due: number, idSuffix: IdSuffix): JobId {
  return idsDueAt(due)(idSuffix);
}

/** The same for many jobs that are due at one moment. */
export function idsDueAt(due: number): (idSuffix: IdSuffix) => JobId {
  const time = Math.max(0, Math.floor(due)).toString(16).padStart(12, "0");
  const start = `${time.slice(0, 8)}-${time.slice(8)}-`;
  return (idSuffix) => (start + idSuffix) as JobId;
}

/** The smallest id there can be of a job due at that time. */
export function firstIdAt(due: number): JobId {
  return idsDueAt(due)("0000-0000-000000000000" as IdSuffix);
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
export function idSuffixOf(id: JobId): IdSuffix {
  return id.slice(14) as IdSuffix;
}

/** Its digits alone: what is encrypted for a job is bound to these, and its share of a window follows from them. */
export function digitsOf(idSuffix: IdSuffix): string {
  return idSuffix.replaceAll("-", "");
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export function isJobId(text: string): text is JobId {
  return UUID.test(text);
}
