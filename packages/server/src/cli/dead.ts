import type { Command } from "commander";
import type { DeadGroupsFilter } from "pawl";
import { confirm } from "./confirm.js";
import { type RedriveFlags, redriveDead } from "./dead-redrive.js";
import { EXIT, type ExitCode } from "./exit.js";
import { whole } from "./flags.js";
import { type FilterFlags, filterOf, flagsAgain, withFilter } from "./job-filter.js";
import { JOB_HEADINGS, jobRow } from "./job-words.js";
import type { Act, Session } from "./session.js";
import { fromNow, plural } from "./words.js";

interface GroupsFlags extends DeadGroupsFilter {
  readonly limit: string;
}

const BEYOND_GROUPS = ["state", "tag", "key", "group", "since", "until"] as const;

export function build(command: Command, act: Act): void {
  const groups = withFilter(command.command("groups").description("by what they died of, the largest group first"), BEYOND_GROUPS).option(
    "-n, --limit <count>",
    "groups at most",
    "20",
  );
  act<GroupsFlags>(groups, showGroups);

  const list = withFilter(command.command("list").alias("ls").description("one by one, newest due time first"), ["state"])
    .option("-n, --limit <count>", "jobs of a page", "50")
    .option("--after <id>", "the page after the one that ended so");
  act<FilterFlags & { limit: string; after?: string }>(list, listDead);

  const redrive = withFilter(command.command("redrive").description("run them again, with fresh counts: a few first, watched, then the rest"), [
    "state",
  ])
    .option("--canary <count>", "so many first; the rest only if none of them dies again")
    .option("--patience <time>", "how long the first ones may take", "10m")
    .option("--rate <rate>", "not faster than that: 10/s, 100/m")
    .option("--limit <count>", "so many at most")
    .option("--after <id>", "go on where an earlier one stopped")
    .option("-y, --yes", "do not ask");
  act<RedriveFlags>(redrive, redriveDead);

  const drop = withFilter(command.command("drop").description("remove them and their history"), ["state"])
    .option("--limit <count>", "so many at most")
    .option("-y, --yes", "do not ask");
  act<FilterFlags & { limit?: string; yes?: boolean }>(drop, dropDead);
}

async function showGroups({ out, pawl }: Session, { limit, tenant, queue, task, failure }: GroupsFlags): Promise<void> {
  const filter = {
    ...(tenant === undefined ? {} : { tenant }),
    ...(queue === undefined ? {} : { queue }),
    ...(task === undefined ? {} : { task }),
    ...(failure === undefined ? {} : { failure }),
  };
  const page = { limit: whole("--limit", limit, 1, 1_000) };
  const groups = await (await pawl()).dead.groups(filter, page);
  out.answer({ groups }, () => {
    const now = new Date();
    out.table(
      ["group", "count", "first", "last", "task", "failure"],
      groups.map(({ fingerprint, count, firstSeen, lastSeen, task: of, name, message }) => [
        fingerprint,
        { text: count, style: "red" },
        fromNow(firstSeen, now),
        fromNow(lastSeen, now),
        of,
        `${name}: ${message}`,
      ]),
    );
    const [first] = groups;
    if (first === undefined) out.note("no dead jobs");
    else out.note(`pawl dead list --group ${first.fingerprint} shows them; pawl dead redrive --group ${first.fingerprint} --canary 5 tries a few`);
  });
}

async function listDead({ out, pawl }: Session, flags: FilterFlags & { limit: string; after?: string }): Promise<void> {
  const { limit, after } = flags;
  const filter = filterOf(flags);
  const page = { limit: whole("--limit", limit, 1, 1_000), ...(after === undefined ? {} : { after }) };
  const { jobs, next } = await (await pawl()).dead.list(filter, page);
  out.answer({ jobs, ...(next === undefined ? {} : { next }) }, () => {
    const now = new Date();
    out.table(
      JOB_HEADINGS,
      jobs.map((job) => jobRow(job, now)),
    );
    if (jobs.length === 0) out.note("no dead jobs");
    if (next !== undefined) out.note(`more: pawl dead list${flagsAgain(flags)} --after ${next}`);
  });
}

async function dropDead(session: Session, flags: FilterFlags & { limit?: string; yes?: boolean }): Promise<ExitCode> {
  const { out } = session;
  const filter = filterOf(flags);
  const limit = flags.limit === undefined ? Number.POSITIVE_INFINITY : whole("--limit", flags.limit);
  const { dead } = await session.pawl();
  const most = Math.min(limit, await dead.count(filter));
  if (most === 0) {
    out.answer({ count: 0, skipped: 0, failed: 0 }, () => out.note("no dead jobs"));
    return EXIT.done;
  }
  await confirm(session, `remove ${plural(most, "dead job")} for good?`, flags.yes);
  const { count, skipped, failed } = await dead.drop(filter, { limit: most });
  out.answer({ count, skipped, failed }, () => out.line(`${plural(count, "job")} dropped${failed > 0 ? `, ${failed} failed` : ""}`));
  return failed > 0 ? EXIT.failed : EXIT.done;
}
