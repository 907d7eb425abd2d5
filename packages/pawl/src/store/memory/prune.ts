import { isFinished } from "../../core/jobs/job.js";
import { compareText } from "../../core/jobs/lane.js";
import { stillHolds } from "../../core/jobs/unique-key.js";
import type { ExportedJob } from "../port/duties/duties.js";
import type { PruneCounts, PruneRules } from "../port/duties/prune.js";
import { forgetBatches } from "./jobs/batches.js";
import { erase, lastOf } from "./jobs/history.js";
import { enter, hasStarted, leave } from "./jobs/move.js";
import { forgetReplies } from "./jobs/replies.js";
import { historyOf, recordOf } from "./jobs/view.js";
import type { MemoryJob, Tables } from "./state.js";

/** Three steps, because the export is somebody else's code and may take its time: choose, export, let go. */
export async function prune(tables: Tables, rules: PruneRules): Promise<PruneCounts> {
  const { batch, chosen } = await tables.step(() => {
    const rows = pastTheirTime(tables, rules);
    return { chosen: rows, batch: rows.map((row) => ({ job: recordOf(tables, row), history: historyOf(row) })) };
  });
  if (batch.length > 0) await rules.exportFinished?.(batch);
  return tables.step(() => {
    // What was brought back or dropped meanwhile is no longer ours to let go.
    const rows = chosen.filter((row) => tables.jobs.get(row.id) === row && isFinished(row.status.state));
    for (const row of rows) {
      leave(tables, row);
      erase(tables, row);
    }
    return { dropped: rows.length, forgotten: forget(tables) };
  });
}

function pastTheirTime(tables: Tables, rules: PruneRules): readonly MemoryJob[] {
  const finishedAt = (row: MemoryJob) => lastOf(row)?.finishedAt ?? row.createdAt;
  return [...tables.jobs.values()]
    .filter((row) => isFinished(row.status.state) && finishedAt(row) + (row.status.state === "dead" ? rules.dead : rules.finished) <= tables.now)
    .sort((a, b) => finishedAt(a) - finishedAt(b) || compareText(a.id, b.id))
    .slice(0, rules.limit);
}

function forget(tables: Tables): number {
  let forgotten = forgetReplies(tables) + forgetBatches(tables);
  for (const [request, { until }] of tables.requests) {
    if (until <= tables.now && tables.requests.delete(request)) forgotten++;
  }
  for (const [key, { job, hold, until }] of tables.keys) {
    const row = tables.jobs.get(job);
    const held = row !== undefined && stillHolds({ job, hold, state: row.status.state, started: hasStarted(row), remaining: until - tables.now });
    if (!held && tables.keys.delete(key)) forgotten++;
  }
  for (const { effects } of tables.jobs.values()) {
    for (const [name, { until }] of effects) if (until <= tables.now && effects.delete(name)) forgotten++;
  }
  return forgotten;
}

/** What a prune exported, brought back as it was. */
export function restore(tables: Tables, batch: readonly ExportedJob[]): Promise<number> {
  return tables.step(() => {
    const missing = batch.filter(({ job }) => !tables.jobs.has(job.id));
    for (const { job, history } of missing) {
      const row: MemoryJob = {
        id: job.id,
        lane: job.lane,
        options: job.options,
        createdAt: job.createdAt,
        dueAt: job.dueAt,
        input: job.input,
        status: { state: job.state as "succeeded" | "dead" | "cancelled" },
        attempts: job.attempts,
        crashes: job.crashes,
        waits: new Set(),
        onDependencyDeath: "die",
        progress: job.progress,
        key: undefined,
        history: [...history],
        logs: [],
        effects: new Map(),
      };
      tables.jobs.set(row.id, row);
      enter(tables, row);
    }
    return missing.length;
  });
}
