import type { JobFilter, JobView, Pawl } from "pawl";
import { bulkOutcomeOf, isFinished, jobsCursorAfter } from "pawl/service";
import { recordAction } from "../access/audited-actions.js";
import { confirm } from "../confirm.js";
import { CliError, EXIT, type ExitCode, interrupted } from "../exit.js";
import { pace as paceOf, period, whole } from "../flags.js";
import type { Output } from "../output.js";
import { pause } from "../pause.js";
import type { CommandSession } from "../session.js";
import { plural } from "../text.js";
import { auditedFlags, type FilterFlags, filterOf, flagsAgain } from "./job-filter.js";

export interface RedriveFlags extends FilterFlags {
  readonly canary?: string;
  readonly canaryTimeout: string;
  readonly pace?: string;
  readonly reason?: string;
  readonly limit?: string;
  readonly cursor?: string;
  readonly yes?: boolean;
}

/**
 * Dead jobs again: a few first, then, when those have not died again, the rest at a pace. It goes from the newest to the
 * oldest by id and says where it stopped, so that none is redriven twice by whoever goes on from there.
 */
export async function redriveDead(session: CommandSession, flags: RedriveFlags): Promise<ExitCode> {
  const { out, signal } = session;
  const every = flags.pace === undefined ? 0 : paceOf("--pace", flags.pace);
  const canaryTimeout = period("--canary-timeout", flags.canaryTimeout);
  const limit = flags.limit === undefined ? Number.POSITIVE_INFINITY : whole("--limit", flags.limit);
  const canary = flags.canary === undefined ? 0 : Math.min(limit, whole("--canary", flags.canary, 1, 1_000));
  const filter = filterOf(flags);
  const opened = await session.pawl();
  const found = Math.min(limit, await opened.dead.count(filter));
  if (found === 0) {
    out.answer({ redriven: 0, skipped: 0 }, () => out.note("no dead jobs"));
    return EXIT.done;
  }
  const pawl = await recordAction(opened, "dead.redrive", {
    details: { ...auditedFlags(flags), ...(flags.reason === undefined ? {} : { reason: flags.reason }) },
  });
  const pages = new DeadJobPages(pawl, filter, flags.cursor);
  const sum = { redriven: 0, skipped: 0 };
  const stopped = () =>
    interrupted(
      `${plural(sum.redriven, "job")} redriven, then stopped`,
      `go on: pawl dead redrive${flagsAgain(flags)}${flags.pace === undefined ? "" : ` --pace ${flags.pace}`}${pages.last === undefined ? "" : ` --cursor ${pages.last}`}`,
    );

  if (canary > 0) {
    const first = await pages.next(canary);
    for (const job of first) count(sum, await redrive(pawl, job, flags.reason));
    out.note(`${plural(first.length, "job")} redriven; watching`);
    const ended = await waitForAll(out, pawl, first, canaryTimeout, signal);
    if (ended === undefined) throw stopped();
    const bad = ended.filter(({ state }) => state !== "succeeded");
    if (bad.length > 0) throw canariesDied(ended, bad);
    out.note(`all of ${first.length} succeeded`);
  }
  const rest = found - pages.seen;
  if (rest > 0) {
    await confirm(session, `redrive ${canary > 0 ? "the other " : ""}${plural(rest, "job")}?`, flags.yes);
    const began = performance.now();
    for (let done = 0; done < limit - canary; ) {
      // As many as are due by now, so that a slow answer does not slow down the pace.
      const due = every === 0 ? MAX_CONCURRENT : Math.floor((performance.now() - began) / every) + 1 - done;
      if (due < 1 && !(await pause(every * (done + 1) - (performance.now() - began), signal))) throw stopped();
      if (signal.aborted) throw stopped();
      const jobs = await pages.next(Math.max(1, Math.min(MAX_CONCURRENT, due, limit - canary - done)));
      if (jobs.length === 0) break;
      for (const fate of await Promise.all(jobs.map((job) => redrive(pawl, job, flags.reason)))) count(sum, fate);
      done += jobs.length;
      out.progress(`${sum.redriven.toLocaleString("en")} of ${found.toLocaleString("en")} redriven`);
    }
  }
  out.answer(sum, () => out.line(`${plural(sum.redriven, "job")} redriven${sum.skipped > 0 ? `, ${sum.skipped} changed by others` : ""}`));
  return EXIT.done;
}

const MAX_CONCURRENT = 16;

function count(sum: { redriven: number; skipped: number }, fate: "redriven" | "skipped"): void {
  sum[fate]++;
}

/** Somebody else may have redriven or deleted it. */
async function redrive(pawl: Pawl, { id }: JobView, reason: string | undefined): Promise<"redriven" | "skipped"> {
  try {
    await pawl.jobs.redrive(id, reason === undefined ? {} : { reason });
    return "redriven";
  } catch (error) {
    if (bulkOutcomeOf(error) === "skipped") return "skipped";
    throw error;
  }
}

const PAGE_SIZE = 500;

/** Dead jobs in order, a page ahead. */
class DeadJobPages {
  #page: JobView[] = [];
  #cursor: string | undefined;
  #over = false;
  /** the cursor after the last one given out */
  last: string | undefined;
  seen = 0;

  constructor(
    private readonly pawl: Pawl,
    private readonly filter: JobFilter,
    cursor: string | undefined,
  ) {
    this.#cursor = cursor;
    this.last = cursor;
  }

  async next(maxJobs: number): Promise<readonly JobView[]> {
    while (this.#page.length < maxJobs && !this.#over) {
      const { items, next } = await this.pawl.dead.list(this.filter, {
        limit: PAGE_SIZE,
        ...(this.#cursor === undefined ? {} : { cursor: this.#cursor }),
      });
      this.#page.push(...items);
      this.#cursor = next;
      this.#over = next === undefined;
    }
    const pageJobs = this.#page.splice(0, maxJobs);
    const lastJob = pageJobs.at(-1);
    if (lastJob !== undefined) this.last = jobsCursorAfter(lastJob.id);
    this.seen += pageJobs.length;
    return pageJobs;
  }
}

const POLL_INTERVAL_MS = 500;

/** How they ended; undefined if somebody called it off. */
async function waitForAll(
  out: Output,
  pawl: Pawl,
  jobs: readonly JobView[],
  timeout: number,
  signal: AbortSignal,
): Promise<readonly JobView[] | undefined> {
  const began = performance.now();
  for (;;) {
    const now = await Promise.all(jobs.map(({ id }) => pawl.jobs.get(id)));
    const done = now.filter(({ state }) => isFinished(state));
    out.progress(`${done.length} of ${now.length} finished`);
    // One that died tells enough: the others would only take longer.
    if (done.length === now.length || done.some(({ state }) => state === "dead")) return done;
    if (performance.now() - began > timeout) {
      throw new CliError(
        EXIT.died,
        "canary_unfinished",
        `${done.length} of ${now.length} finished in time; the rest was left alone`,
        `give them longer with --canary-timeout, or look: pawl jobs explain ${now.find(({ state }) => !isFinished(state))?.id}`,
      );
    }
    if (!(await pause(POLL_INTERVAL_MS, signal))) return undefined;
  }
}

function canariesDied(ended: readonly JobView[], bad: readonly JobView[]): CliError {
  const why = bad[0]?.failure;
  return new CliError(
    EXIT.died,
    "canary_died",
    `${bad.length} of ${ended.length} ended badly${why === undefined ? "" : `: ${why.name}: ${why.message}`}; the rest was left alone`,
    `pawl jobs show ${bad[0]?.id}`,
  );
}
