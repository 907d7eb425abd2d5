import { type Command, Option } from "commander";
import type { Priority, ScheduleOptions, ScheduleView } from "pawl";
import type { ScheduleReference } from "pawl/service";
import { confirm } from "../confirm.js";
import { usage } from "../exit.js";
import { instant, json, type PageFlags, pageOf, whole, withPages } from "../flags.js";
import type { Act, CommandSession } from "../session.js";
import { fromNow, plural, timestamp } from "../text.js";

interface ScheduleFlags {
  readonly tenant?: string;
}

const withTenant = (command: Command): Command => command.option("--tenant <tenant>", "whose schedule it is, if not the default tenant's");
const scheduleRef = (name: string | undefined, { tenant }: ScheduleFlags): ScheduleReference => ({
  name: name as string,
  ...(tenant === undefined ? {} : { tenant }),
});

export function build(command: Command, act: Act): void {
  const list = command
    .command("list")
    .alias("ls")
    .description("by tenant and name, with the next tick of each")
    .option("--tenant <tenant>", "of this tenant")
    .option("--paused", "those that are paused")
    .option("--undeclared", "those that the code no longer has");
  act<ScheduleListFlags>(withPages(list), listSchedules);

  const show = withTenant(command.command("show <name>").description("a schedule, and what became of its last ticks")).option(
    "--ticks <count>",
    "how many of them",
    "10",
  );
  act<ScheduleFlags & { ticks: string }>(show, async ({ out, pawl }, flags, name) => {
    const limit = whole("--ticks", flags.ticks, 1, 1_000);
    const { schedules } = await pawl();
    const [view, { items: ticks }] = await Promise.all([
      schedules.get(scheduleRef(name, flags)),
      schedules.ticks(scheduleRef(name, flags), { limit }),
    ]);
    out.answer({ schedule: view, ticks }, () => {
      for (const [fact, value] of Object.entries(view))
        out.line(
          { text: fact.padEnd(17), style: "dim" },
          value instanceof Date ? timestamp(value) : typeof value === "object" ? JSON.stringify(value) : String(value),
        );
      if (ticks.length > 0) out.line({ text: "ticks", style: "dim" });
      for (const tick of ticks) {
        if ("at" in tick) out.line(`  ${timestamp(tick.at)}  ${tick.kind}  ${tick.job}`);
        else
          out.line(
            `  ${timestamp(tick.from)} to ${timestamp(tick.to)}  ${plural(tick.count, "tick")} ${tick.kind}${tick.kind === "skipped" ? `: ${tick.reason}` : ""}`,
          );
      }
    });
  });

  const put = withTenant(command.command("put <name>").description("make a schedule, or replace the one of this name"))
    .requiredOption("--task <task>", "the task of its jobs")
    .option("--cron <fields>", "five or six fields: '0 8 * * 1-5'")
    .option("--every <time>", "elapsed time between two ticks: 90s, 5m, 24h")
    .option("--at <instant>", "one tick: 2026-11-15T12:00Z")
    .option("--time-zone <zone>", "of --cron and of times without an offset; UTC unless set")
    .option("--start <instant>", "no ticks before")
    .option("--end <instant>", "no ticks after")
    .option("--input <json>", "the input of its jobs")
    .option("--queue <queue>", "the queue of its jobs, in place of the task's own")
    .option("--priority <priority>", "0 to 9, or low, normal, high, critical")
    .addOption(new Option("--missed <policy>", "what becomes of missed ticks; latest unless set").choices(["skip", "latest", "all"]))
    .addOption(
      new Option("--overlap <policy>", "a tick while an earlier job is unfinished; skip unless set").choices(["allow", "skip", "wait", "cancel"]),
    )
    .option("--stagger <time>", "move all ticks by a fixed part of this")
    .option("--jitter <time>", "move each tick by a part of this");
  act<PutScheduleFlags>(put, putSchedule);

  const preview = withTenant(command.command("preview <name>").description("its next ticks, and what is odd about them"))
    .option("-n, --count <count>", "how many", "10")
    .option("--from <instant>", "from then on; left out: from now");
  act<ScheduleFlags & { count: string; from?: string }>(preview, async ({ out, pawl }, flags, name) => {
    const count = whole("--count", flags.count, 1, 1_000);
    const from = flags.from === undefined ? undefined : instant("--from", flags.from);
    const ticks = await (await pawl()).schedules.preview(scheduleRef(name, flags), { count, ...(from === undefined ? {} : { from }) });
    out.answer({ items: ticks }, () =>
      out.table(
        ["at", "fires", "note"],
        ticks.map(({ at, firesAt, note }) => [timestamp(at), timestamp(firesAt), note === undefined ? "" : String(note)]),
      ),
    );
  });

  for (const verb of ["pause", "resume"] as const) {
    const what = verb === "pause" ? "no more ticks; those that pass meanwhile are missed" : "tick again";
    act<ScheduleFlags>(withTenant(command.command(`${verb} <name>`).description(what)), async ({ out, pawl }, flags, name) => {
      await (await pawl()).schedules[verb](scheduleRef(name, flags));
      out.answer({ schedule: name, [verb === "pause" ? "paused" : "resumed"]: true }, () => out.line(`${name} ${verb}d`));
    });
  }

  const trigger = withTenant(command.command("trigger <name>").description("one more job, now"))
    .option("--input <json>", "the input, in place of its own")
    .option("--idempotency-key <id>", "repeating this command within a day makes no second job");
  act<ScheduleFlags & { input?: string; idempotencyKey?: string }>(trigger, async ({ out, pawl }, flags, name) => {
    const { input, idempotencyKey } = flags;
    const how = { ...(input === undefined ? {} : { input: json("--input", input) }), ...(idempotencyKey === undefined ? {} : { idempotencyKey }) };
    const job = await (await pawl()).schedules.trigger(scheduleRef(name, flags), how);
    out.answer({ id: job.id, task: job.task }, () => out.line(job.id));
  });

  const backfill = withTenant(command.command("backfill <name>").description("jobs for ticks of the past that have none"))
    .requiredOption("--from <instant>", "the first tick of the range, or a time ago")
    .requiredOption("--to <instant>", "the last one")
    .option("--pace <time>", "time between two jobs")
    .option("--dry-run", "only say what it would do")
    .option("-y, --yes", "do not ask");
  act<BackfillFlags>(backfill, backfillSchedule);

  const deletion = withTenant(command.command("delete <name>").description("delete it and the record of its ticks; its jobs stay")).option(
    "-y, --yes",
    "do not ask",
  );
  act<ScheduleFlags & { yes?: boolean }>(deletion, async (session, flags, name) => {
    await confirm(session, `delete schedule ${name}?`, flags.yes);
    await (await session.pawl()).schedules.delete(scheduleRef(name, flags));
    session.out.answer({ schedule: name, deleted: true }, () => session.out.line(`${name} deleted`));
  });
}

interface PutScheduleFlags extends ScheduleFlags, Pick<ScheduleOptions, "cron" | "timeZone" | "overlap"> {
  readonly task: string;
  readonly every?: string;
  readonly at?: string;
  readonly start?: string;
  readonly end?: string;
  readonly input?: string;
  readonly queue?: string;
  readonly priority?: string;
  readonly missed?: "skip" | "latest" | "all";
  readonly stagger?: string;
  readonly jitter?: string;
}

async function putSchedule({ out, pawl }: CommandSession, flags: PutScheduleFlags, name?: string): Promise<void> {
  const { task, input, queue, priority, tenant, cron, every, at, timeZone, start, end, missed, overlap, stagger, jitter } = flags;
  const timings = [cron, every, at].filter((time) => time !== undefined);
  if (timings.length !== 1)
    throw usage("a schedule takes one of --cron, --every and --at", "pawl schedules put report --task report --cron '0 8 * * 1-5'");
  const job = definedFields({ queue, priority: priority === undefined ? undefined : priorityOf(priority) });
  const result = await (await pawl()).schedules.put(name as string, task, {
    ...definedFields({ tenant, cron, every, at, timeZone, start, end, missed, overlap, stagger, jitter }),
    ...(input === undefined ? {} : { input: json("--input", input) }),
    ...(Object.keys(job).length === 0 ? {} : { job }),
  });
  out.answer({ schedule: name, result }, () => out.line(`${name} ${result}`));
}

type DefinedFields<T> = { [Field in keyof T]?: Exclude<T[Field], undefined> };

function definedFields<T extends object>(fields: T): DefinedFields<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as DefinedFields<T>;
}

function priorityOf(text: string): Priority {
  return (/^\d+$/.test(text) ? whole("--priority", text, 0, 9) : text) as Priority;
}

interface ScheduleListFlags extends ScheduleFlags, PageFlags {
  readonly paused?: boolean;
  readonly undeclared?: boolean;
}

async function listSchedules({ out, pawl }: CommandSession, { tenant, paused, undeclared, ...flags }: ScheduleListFlags): Promise<void> {
  const request = pageOf(flags);
  const page = await (await pawl()).schedules.list(
    { ...(tenant === undefined ? {} : { tenant }), ...(paused === true ? { paused } : {}), ...(undeclared === true ? { undeclared } : {}) },
    request,
  );
  out.answer(page, () => {
    const now = new Date();
    out.table(
      ["schedule", "tenant", "task", "when", "next", ""],
      page.items.map((view) => [
        view.name,
        view.tenant,
        view.task,
        whenOf(view),
        view.next === undefined ? "over" : fromNow(view.next, now),
        view.pausedSince !== undefined
          ? { text: "paused", style: "yellow" }
          : view.undeclaredSince !== undefined
            ? { text: "not in the code", style: "yellow" }
            : view.overridden
              ? "not as in the code"
              : "",
      ]),
    );
    if (page.items.length === 0) out.note("no schedules");
    if (page.next !== undefined) out.note(`more: --cursor ${page.next}`);
  });
}

function whenOf({ cron, every, at, timeZone }: ScheduleView): string {
  const what =
    cron ??
    (every === undefined ? undefined : `every ${interval(every as number)}`) ??
    (at === undefined ? "" : `at ${String(at instanceof Date ? at.toISOString() : at)}`);
  return timeZone === undefined || timeZone === "UTC" ? what : `${what} ${timeZone}`;
}

const UNITS = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "m"],
  [1_000, "s"],
] as const;

/** As it would be given, and not rounded: 90s are not 2 min. */
function interval(ms: number): string {
  const [size, unit] = UNITS.find(([one]) => ms % one === 0) ?? [1, "ms"];
  return `${ms / size}${unit}`;
}

interface BackfillFlags extends ScheduleFlags {
  readonly from: string;
  readonly to: string;
  readonly pace?: string;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

async function backfillSchedule(session: CommandSession, flags: BackfillFlags, name?: string): Promise<void> {
  const { out } = session;
  const range = { from: instant("--from", flags.from), to: instant("--to", flags.to), ...(flags.pace === undefined ? {} : { pace: flags.pace }) };
  if (range.from > range.to) throw usage("--from is after --to");
  const { schedules } = await session.pawl();
  const plan = await schedules.backfill(scheduleRef(name, flags), { ...range, dryRun: true });
  if (flags.dryRun === true || plan.missing.length === 0) {
    out.answer(plan, () => out.line(`${plural(plan.ticks, "tick")}, ${plan.fired} with a job; ${plural(plan.missing.length, "job")} would be made`));
    return;
  }
  await confirm(session, `enqueue ${plural(plan.missing.length, "job")} of ${name}?`, flags.yes);
  const report = await schedules.backfill(scheduleRef(name, flags), range);
  out.answer(report, () => out.line(`${plural(report.jobs, "job")} enqueued`));
}
