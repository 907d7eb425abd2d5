export interface Interval {
  readonly from: number;
  readonly to: number;
}

/** What began in any stretch of time beyond `perMs` for each ms of it, at most: the burst that a rate would need for that. */
export function largestBurst(starts: readonly number[], perMs: number): number {
  let least = Number.POSITIVE_INFINITY;
  let most = 0;
  [...starts]
    .sort((a, b) => a - b)
    .forEach((at, index) => {
      const ahead = index - at * perMs;
      least = Math.min(least, ahead);
      most = Math.max(most, ahead - least + 1);
    });
  return most;
}

/** The most that overlap at any instant. What ends at one makes room for what begins at it. */
export function maxOverlap(intervals: readonly Interval[]): number {
  const steps = intervals.flatMap(({ from, to }) => [
    { at: from, by: 1 },
    { at: to, by: -1 },
  ]);
  steps.sort((a, b) => a.at - b.at || a.by - b.by);
  let now = 0;
  let most = 0;
  for (const { by } of steps) {
    now += by;
    most = Math.max(most, now);
  }
  return most;
}
