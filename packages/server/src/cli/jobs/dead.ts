import type { Command } from "commander";
import { type DeadGroupsFilter, FILTER_ROWS, type FilterName } from "pawl/service";
import { confirm } from "../confirm.js";
import { EXIT, type ExitCode } from "../exit.js";
import { type PageFlags, pageOf, whole, withPages } from "../flags.js";
import type { Act, CommandSession } from "../session.js";
import { fromNow, plural } from "../text.js";
import { type RedriveFlags, redriveDead } from "./dead-redrive.js";
import { type FilterFlags, filterOf, flagsAgain, withFilter } from "./job-filter.js";
import { JOB_HEADINGS, jobRow } from "./job-text.js";

type GroupsFlags = DeadGroupsFilter & PageFlags;

const FILTERS_OF_GROUPS: readonly FilterName[] = ["tenant", "queue", "task", "failure"];
const FILTERS_NOT_OF_GROUPS = FILTER_ROWS.map(([name]) => name).filter((name) => !FILTERS_OF_GROUPS.includes(name));

export function build(command: Command, act: Act): void {
  const groups = withPages(
    withFilter(command.command("groups").description("by what they died of, the largest group first"), FILTERS_NOT_OF_GROUPS),
    "20",
  );
  act<GroupsFlags>(groups, showGroups);

  const list = withPages(withFilter(command.command("list").alias("ls").description("one by one, newest due time first"), ["state"]));
  act<FilterFlags & PageFlags>(list, listDead);

  const redrive = withFilter(command.command("redrive").description("run them again, with fresh counts: a few first, watched, then the rest"), [
    "state",
  ])
    .option("--canary <count>", "redrive this many first, and the rest only if none of them dies again")
    .option("--canary-timeout <time>", "how long to wait for the first ones to finish", "10m")
    .option("--pace <pace>", "no faster than this: 10/s, 100/m, or the time between two: 100ms")
    .option("--reason <text>", "for the histories of the jobs, and the audit log")
    .option("--limit <count>", "most jobs")
    .option("--cursor <cursor>", "go on where an earlier one stopped")
    .option("-y, --yes", "do not ask");
  act<RedriveFlags>(redrive, redriveDead);

  const deletion = withFilter(command.command("delete").description("delete them and their history"), ["state"])
    .option("--limit <count>", "most jobs")
    .option("--reason <text>", "for the audit log")
    .option("-y, --yes", "do not ask");
  act<DeleteFlags>(deletion, deleteDead);
}

async function showGroups({ out, pawl }: CommandSession, { limit, cursor, tenant, queue, task, failure }: GroupsFlags): Promise<void> {
  const filter = {
    ...(tenant === undefined ? {} : { tenant }),
    ...(queue === undefined ? {} : { queue }),
    ...(task === undefined ? {} : { task }),
    ...(failure === undefined ? {} : { failure }),
  };
  const request = pageOf({ limit, ...(cursor === undefined ? {} : { cursor }) });
  const page = await (await pawl()).dead.groups(filter, request);
  out.answer(page, () => {
    const now = new Date();
    out.table(
      ["group", "count", "first", "last", "task", "failure"],
      page.items.map(({ fingerprint, count, firstSeen, lastSeen, task: of, name, message }) => [
        fingerprint,
        { text: count, style: "red" },
        fromNow(firstSeen, now),
        fromNow(lastSeen, now),
        of,
        `${name}: ${message}`,
      ]),
    );
    const [first] = page.items;
    if (first === undefined) out.note("no dead jobs");
    else
      out.note(
        `pawl dead list --fingerprint ${first.fingerprint} shows them; pawl dead redrive --fingerprint ${first.fingerprint} --canary 5 tries a few`,
      );
    if (page.next !== undefined) out.note(`more: --cursor ${page.next}`);
  });
}

async function listDead({ out, pawl }: CommandSession, flags: FilterFlags & PageFlags): Promise<void> {
  const [filter, request] = [filterOf(flags), pageOf(flags)];
  const page = await (await pawl()).dead.list(filter, request);
  out.answer(page, () => {
    const now = new Date();
    out.table(
      JOB_HEADINGS,
      page.items.map((job) => jobRow(job, now)),
    );
    if (page.items.length === 0) out.note("no dead jobs");
    if (page.next !== undefined) out.note(`more: pawl dead list${flagsAgain(flags)} --cursor ${page.next}`);
  });
}

interface DeleteFlags extends FilterFlags {
  readonly limit?: string;
  readonly reason?: string;
  readonly yes?: boolean;
}

async function deleteDead(session: CommandSession, flags: DeleteFlags): Promise<ExitCode> {
  const { out } = session;
  const filter = filterOf(flags);
  const limit = flags.limit === undefined ? Number.POSITIVE_INFINITY : whole("--limit", flags.limit);
  const { dead } = await session.pawl();
  const maxJobs = Math.min(limit, await dead.count(filter));
  if (maxJobs === 0) {
    out.answer({ changed: 0, skipped: 0, failed: 0 }, () => out.note("no dead jobs"));
    return EXIT.done;
  }
  await confirm(session, `delete ${plural(maxJobs, "dead job")} for good?`, flags.yes);
  const { changed, skipped, failed } = await dead.delete(filter, { limit: maxJobs, ...(flags.reason === undefined ? {} : { reason: flags.reason }) });
  out.answer({ changed, skipped, failed }, () => out.line(`${plural(changed, "job")} deleted${failed > 0 ? `, ${failed} failed` : ""}`));
  return failed > 0 ? EXIT.failed : EXIT.done;
}
