import { bulkOutcomeOf } from "../../core/access/bulk-outcome.js";
import type { BulkReport, Job } from "../scheduler.js";

const MAX_FAILURES_SHOWN = 20;

/** What became of the jobs of an operation on many. */
export class BulkCounter {
  count = 0;
  skipped = 0;
  failed = 0;
  readonly failures: BulkReport["failures"][number][] = [];

  async change(job: Job["id"], change: () => Promise<void>): Promise<void> {
    try {
      await change();
      this.count++;
    } catch (error) {
      const outcome = bulkOutcomeOf(error);
      if (outcome === "fatal") throw error;
      this[outcome]++;
      if (outcome === "failed") this.show({ job, error });
    }
  }

  /** The first few. */
  show(failure: BulkReport["failures"][number]): void {
    if (this.failures.length < MAX_FAILURES_SHOWN) this.failures.push(failure);
  }

  report(): BulkReport {
    const { count, skipped, failed, failures } = this;
    return { changed: count, skipped, failed, failures };
  }
}
