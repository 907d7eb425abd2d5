/**
 * What to add to this process's clock to get the machine's. Read in between two looks at our own; of some tries the
 * tightest counts, since a process may be put aside between two lines.
 */
function offset(): number {
  const tries = Array.from({ length: 20 }, () => {
    const before = performance.now();
    const machine = Number(process.hrtime.bigint()) / 1e6;
    const after = performance.now();
    return { gap: after - before, offset: machine - (before + after) / 2 };
  });
  return tries.reduce((best, each) => (each.gap < best.gap ? each : best)).offset;
}

const OFFSET = offset();

/** ms of the machine's monotonic clock, the same in all processes. */
export function monotonic(): number {
  return performance.now() + OFFSET;
}
