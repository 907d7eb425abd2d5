export interface Interval {
  readonly from: number;
  readonly to: number;
}

/** The most that overlap at any instant. What ends at one makes room for what begins at it. */
export function mostAtOnce(intervals: readonly Interval[]): number {
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
