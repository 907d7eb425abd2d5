import { fateOf } from "../core/bulk.js";
import type { BulkReport, Job } from "./scheduler.js";

const FAILURES_SHOWN = 20;

/** What became of the jobs of an operation on many. */
export class BulkTally {
  count = 0;
  skipped = 0;
  failed = 0;
  readonly failures: BulkReport["failures"][number][] = [];

  async change(job: Job["id"], change: () => Promise<void>): Promise<void> {
    try {
      await change();
      this.count++;
    } catch (error) {
      const fate = fateOf(error);
      if (fate === "fatal") throw error;
      this[fate]++;
      if (fate === "failed") this.show({ job, error });
    }
  }

  /** The first few. */
  show(failure: BulkReport["failures"][number]): void {
    if (this.failures.length < FAILURES_SHOWN) this.failures.push(failure);
  }

  report(): BulkReport {
    const { count, skipped, failed, failures } = this;
    return { count, skipped, failed, failures };
  }
}
