import type { Jobs } from "../contract/child.ts";
import type { PlannedJob } from "../contract/system.ts";

/** The jobs a command asks for, made one at a time. */
export function* planned(jobs: Jobs): Generator<PlannedJob> {
  const { count, from = 0, due, ms, limited } = jobs;
  const takes = ms === undefined ? {} : { ms };
  for (let i = 0; i < count; i++) {
    const n = from + i;
    if (limited !== undefined) {
      yield { limited, input: limited === "parked" || i % 100 === 0 ? { n, key: limited } : { n } };
      continue;
    }
    yield {
      input: due === undefined ? { n, ...takes } : { n, due: Math.round(due.start + scattered(i) * due.over), ...takes },
      ...ownerOf(i, jobs),
    };
  }
}

/** Evenly over 0 … 1 and in no order, but the same in every run: multiples of the golden ratio. */
export function scattered(i: number): number {
  return (i * 0.6180339887498949) % 1;
}

function ownerOf(i: number, { tenants, tenant, newcomers }: Jobs): Pick<PlannedJob, "tenant"> {
  if (tenants !== undefined) return { tenant: tenantOf(i, tenants) };
  if (newcomers !== undefined) return { tenant: `newcomer-${i % newcomers}` };
  return tenant === undefined ? {} : { tenant };
}

/** Every second job is the first tenant's, the others take turns. */
function tenantOf(i: number, tenants: number): string {
  return i % 2 === 0 || tenants === 1 ? "tenant-0" : `tenant-${1 + (((i - 1) / 2) % (tenants - 1))}`;
}

/** What an iterable yields, so many at a time. */
export function* chunked<T>(items: Iterable<T>, size: number): Generator<T[]> {
  let chunk: T[] = [];
  for (const item of items) {
    chunk.push(item);
    if (chunk.length === size) {
      yield chunk;
      chunk = [];
    }
  }
  if (chunk.length > 0) yield chunk;
}

/** Works on so many chunks at a time. The first failure is thrown. */
export async function inParallel<T>(items: Iterable<T>, width: number, work: (item: T) => Promise<unknown>): Promise<void> {
  const source = items[Symbol.iterator]();
  const runner = async () => {
    for (let next = source.next(); !next.done; next = source.next()) await work(next.value);
  };
  await Promise.all(Array.from({ length: width }, runner));
}
