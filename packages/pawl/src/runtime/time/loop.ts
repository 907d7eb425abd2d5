import { Backoff, type BackoffRange } from "./backoff.js";
import type { Clock } from "./clock.js";

export interface LoopOptions {
  readonly clock: Clock;
  /** Does what there is to do. Answers the ms until it wants to run again; undefined: when woken. */
  readonly step: () => Promise<number | undefined>;
  /** At most one call a second, however often the step fails; `unsaid` counts the failures kept quiet since the last. */
  readonly onError: (error: unknown, suppressed: number) => void;
  readonly backoff?: BackoffRange;
  /** ms after which a step that has not ended is given up and another one may start */
  readonly patience?: number;
}

export interface Loop {
  /** Runs the step now, or once more if it is running. While it backs off from a failure, waking waits for that. */
  wake(): void;
  /** No step starts from here on; answers when the running one has ended. */
  stop(): Promise<void>;
}

const REPORT_INTERVAL_MS = 1_000;

/** Runs a step over and over. A step that fails is repeated with a growing, jittered delay; the loop never dies. */
export function loop({ clock, step, onError, backoff: range, patience }: LoopOptions): Loop {
  const backoff = new Backoff(clock, range);
  let mode: "running" | "waiting" | "backing off" | "stopped" = "waiting";
  let wokenMeanwhile = false;
  let cancelTimer: (() => void) | undefined;
  let current: Promise<void> = Promise.resolve();
  let reportedAt = Number.NEGATIVE_INFINITY;
  let suppressed = 0;

  const run = (): void => {
    if (mode === "stopped") return;
    cancelTimer?.();
    cancelTimer = undefined;
    mode = "running";
    wokenMeanwhile = false;
    current = withPatience(clock, step, patience).then(succeeded, failed);
  };
  const wait = (next: "waiting" | "backing off", ms: number): void => {
    mode = next;
    cancelTimer = clock.after(ms, run);
  };
  const succeeded = (delay: number | undefined): void => {
    if (mode === "stopped") return;
    backoff.reset();
    mode = "waiting";
    if (wokenMeanwhile) clock.soon(run);
    else if (delay !== undefined) wait("waiting", delay);
  };
  const failed = (error: unknown): void => {
    if (mode === "stopped") return;
    wait("backing off", backoff.next());
    const now = clock.monotonic();
    if (now - reportedAt < REPORT_INTERVAL_MS) {
      suppressed++;
      return;
    }
    reportedAt = now;
    onError(error, suppressed);
    suppressed = 0;
  };

  run();
  return {
    wake() {
      if (mode === "waiting") run();
      else wokenMeanwhile = true;
    },
    stop() {
      mode = "stopped";
      cancelTimer?.();
      return current;
    },
  };
}

async function withPatience<T>(clock: Clock, step: () => Promise<T>, patience: number | undefined): Promise<T> {
  if (patience === undefined) return step();
  let cancel: (() => void) | undefined;
  const late = new Promise<never>((_, reject) => {
    cancel = clock.after(patience, () => reject(new Error(`no answer within ${patience} ms`)));
  });
  try {
    return await Promise.race([step(), late]);
  } finally {
    cancel?.();
  }
}
