import type { Command } from "commander";
import type { JobView, Pawl } from "pawl";
import { allItems, type JobChange } from "pawl/service";
import { confirm } from "../confirm.js";
import { EXIT, interrupted } from "../exit.js";
import { json, type PageFlags, pageOf, withPages } from "../flags.js";
import type { Act, CommandSession } from "../session.js";
import { plural } from "../text.js";
import { buildBulk } from "./bulk.js";
import { type FilterFlags, filterOf, flagsAgain, withFilter } from "./job-filter.js";
import { JOB_HEADINGS, jobRow, showJob } from "./job-text.js";
import { followLogs, type WaitFlag, watch } from "./job-watch.js";

type JobListFlags = FilterFlags & PageFlags;

export function build(command: Command, act: Act): void {
  const list = withPages(withFilter(command.command("list").alias("ls").description("newest due time first, a page at a time")));
  act<JobListFlags>(list, listJobs);

  const show = command
    .command("show <id>")
    .description("a job, its attempts, why it waits, and what can be done")
    .option("--redact", "without input, output and progress");
  act<{ redact?: boolean }>(show, showOne);

  const watching = command
    .command("watch <id>")
    .description("follow a job until it is finished")
    .option("--wait <time>", `for this long at most; exit code ${EXIT.unfinished} if it is unfinished then`);
  act<WaitFlag>(watching, watch);
  const logs = command.command("logs <id>").description("what its handler logged").option("-f, --follow", "go on until it is finished");
  act<{ follow?: boolean }>(logs, followLogs);
  act(command.command("explain <id>").description("why it is not running, and when it will"), explain);

  const cancel = asking(command.command("cancel <ids...>").description("end jobs for good; the workers of running ones are asked to stop them"));
  act<VerbFlags>(reasoned(cancel), (session, options, ...ids) =>
    each(session, options, ids.flat(), "cancel", (pawl, id) => pawl.jobs.cancel(id, options.reason)),
  );
  act<VerbFlags>(reasoned(command.command("promote <ids...>").description("run scheduled jobs now")), (session, options, ...ids) =>
    each(session, options, ids.flat(), "promote", (pawl, id) => pawl.jobs.promote(id, options.reason)),
  );
  const redrive = command
    .command("redrive <ids...>")
    .description("run dead jobs again, with fresh counts; by cause: pawl dead redrive")
    .option("--input <json>", "the input, in place of the old one")
    .option("--delay <time>", "due this long from now");
  act<VerbFlags & { input?: string; delay?: string }>(reasoned(redrive), (session, { input, delay, reason }, ...ids) => {
    const how = {
      ...(input === undefined ? {} : { input: json("--input", input) }),
      ...(delay === undefined ? {} : { delay }),
      ...(reason === undefined ? {} : { reason }),
    };
    return each(session, {}, ids.flat(), "redrive", (pawl, id) => pawl.jobs.redrive(id, how));
  });
  act<VerbFlags>(reasoned(command.command("pause <ids...>").description("hold jobs back")), (session, options, ...ids) =>
    each(session, options, ids.flat(), "pause", (pawl, id) => pawl.jobs.pause(id, options.reason)),
  );
  act<VerbFlags>(reasoned(command.command("resume <ids...>").description("let paused jobs go")), (session, options, ...ids) =>
    each(session, options, ids.flat(), "resume", (pawl, id) => pawl.jobs.resume(id, options.reason)),
  );
  act(command.command("rerun <id>").description("enqueue a copy of a finished job"), rerun);
  const deletion = asking(command.command("delete <ids...>").description("delete finished jobs and their history"));
  act<VerbFlags>(reasoned(deletion), (session, options, ...ids) =>
    each(session, options, ids.flat(), "delete", async (pawl, id) => {
      await pawl.jobs.delete(id, options.reason);
      return undefined;
    }),
  );

  act<FilterFlags>(withFilter(command.command("count").description("how many there are of a filter")), countJobs);
  buildBulk(command, act);
}

function changeText({ from, to }: JobChange, verb: string): string {
  return from === to ? `${from}, and its worker is asked to ${verb} it` : `${from} → ${to}`;
}

interface VerbFlags {
  readonly reason?: string;
  readonly yes?: boolean;
}

function reasoned(command: Command): Command {
  return command.option("--reason <text>", "for events and histories of jobs, and the audit log");
}

/** What cannot be taken back. */
const CONFIRMED_VERBS = new Set(["cancel", "delete"]);

function asking(command: Command): Command {
  return command.option("-y, --yes", "do not ask");
}

async function listJobs({ out, pawl }: CommandSession, flags: JobListFlags): Promise<void> {
  const [filter, request] = [filterOf(flags), pageOf(flags)];
  const page = await (await pawl()).jobs.list(filter, request);
  out.answer(page, () => {
    const now = new Date();
    out.table(
      JOB_HEADINGS,
      page.items.map((job) => jobRow(job, now)),
    );
    if (page.items.length === 0) out.note("no jobs");
    if (page.next !== undefined) out.note(`more: pawl jobs list${flagsAgain(flags)} --cursor ${page.next}`);
  });
}

async function countJobs({ out, pawl }: CommandSession, flags: FilterFlags): Promise<void> {
  const count = await (await pawl()).jobs.count(filterOf(flags));
  out.answer({ count }, () => out.line(count.toLocaleString("en")));
}

async function showOne({ out, pawl }: CommandSession, { redact }: { redact?: boolean }, id: string): Promise<void> {
  const { jobs } = await pawl();
  const [job, history, explanation] = await Promise.all([jobs.get(id), allItems(jobs.history(id, { limit: 1_000 })), jobs.explain(id)]);
  const visible = redact === true ? redacted(job) : job;
  const attempts = redact === true ? history.map((attempt) => ({ ...attempt, ...("output" in attempt ? { output: HIDDEN } : {}) })) : history;
  out.answer({ job: visible, history: attempts, explanation }, () => showJob(out, visible, attempts, explanation, new Date()));
}

const HIDDEN = "(redacted)";

function redacted(job: JobView): JobView {
  return { ...job, input: HIDDEN, ...("output" in job ? { output: HIDDEN } : {}), ...("progress" in job ? { progress: HIDDEN } : {}) };
}

async function explain({ out, pawl }: CommandSession, _: unknown, id: string): Promise<void> {
  const explanation = await (await pawl()).jobs.explain(id);
  out.answer(explanation, () => out.line(explanation.text));
}

async function rerun({ out, pawl }: CommandSession, _: unknown, id: string): Promise<void> {
  const job = await (await pawl()).jobs.rerun(id);
  out.answer({ id: job.id, task: job.task, rerunOf: id }, () => out.line(job.id));
}

/** One verb on every job; one that refuses stops none of the others, Ctrl-C does. */
async function each(
  session: CommandSession,
  { yes }: VerbFlags,
  ids: readonly string[],
  verb: string,
  change: (pawl: Pawl, id: string) => Promise<JobChange | undefined>,
): Promise<typeof EXIT.done | typeof EXIT.failed> {
  if (CONFIRMED_VERBS.has(verb)) await confirm(session, `${verb} ${plural(ids.length, "job")}?`, yes);
  const { out } = session;
  const pawl = await session.pawl();
  const { describeError } = await import("../errors.js");
  let failed = 0;
  let exit: number = EXIT.done;
  const results: object[] = [];
  for (const id of ids) {
    if (ids.length > 1 && session.signal.aborted) break;
    try {
      const changed = await change(pawl, id);
      results.push(changed === undefined ? { id, deleted: true } : { id, from: changed.from, to: changed.to });
      if (!out.json) out.line(id, `  ${changed === undefined ? "deleted" : changeText(changed, verb)}`);
    } catch (error) {
      const report = describeError(error);
      failed++;
      exit = report.exit;
      results.push({ id, error: { code: report.code, message: report.message } });
      if (!out.json) out.error(report);
    }
  }
  if (out.json) out.answer({ results }, () => {});
  const left = ids.slice(results.length);
  if (left.length > 0)
    throw interrupted(`${results.length} of ${plural(ids.length, "job")}, then stopped`, `go on: pawl jobs ${verb} ${left.join(" ")}`);
  return (ids.length === 1 ? exit : failed === 0 ? EXIT.done : EXIT.failed) as typeof EXIT.failed;
}
