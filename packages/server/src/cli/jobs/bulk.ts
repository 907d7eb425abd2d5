import type { Command } from "commander";
import { BULK_VERBS, type BulkVerb } from "pawl/service";
import { confirm } from "../confirm.js";
import { EXIT, type ExitCode, usage } from "../exit.js";
import { pace as paceOf, whole } from "../flags.js";
import type { Act, CommandSession } from "../session.js";
import { plural } from "../text.js";
import { type FilterFlags, filterOf, withFilter } from "./job-filter.js";

interface BulkFlags extends FilterFlags {
  readonly limit?: string;
  readonly pace?: string;
  readonly reason?: string;
  readonly yes?: boolean;
}

export function buildBulk(command: Command, act: Act): void {
  const bulk = withFilter(command.command("bulk <verb>").description(`one verb on all jobs of a filter: ${BULK_VERBS.join(", ")}`))
    .option("--limit <count>", "change at most this many")
    .option("--pace <pace>", "of redrive: no faster than 10/s, or the time between two: 100ms")
    .option("--reason <text>", "for events and histories of jobs, and the audit log")
    .option("-y, --yes", "do not ask");
  act<BulkFlags>(bulk, changeMany);
}

async function changeMany(session: CommandSession, flags: BulkFlags, text: string): Promise<ExitCode> {
  const { out } = session;
  const verb = BULK_VERBS.find((one) => one === text);
  if (verb === undefined) throw usage(`${text} is not a verb for many jobs`, `write one of ${BULK_VERBS.join(", ")}`);
  const filter = filterOf(flags);
  if (Object.keys(filter).length === 0) throw usage("no filter is given", `say which jobs: pawl jobs bulk ${verb} --queue QUEUE --state STATE`);
  const how = optionsOf(flags, verb);
  const { jobs } = await session.pawl();
  const found = await jobs.count(verb === "redrive" ? { ...filter, state: "dead" } : filter);
  if (found === 0) {
    out.answer({ changed: 0, skipped: 0, failed: 0 }, () => out.note("no jobs"));
    return EXIT.done;
  }
  await confirm(session, `${verb} ${plural(Math.min(found, how.limit ?? found), "job")}?`, flags.yes);
  const { changed, skipped, failed } = await jobs.bulk(verb, filter, how);
  out.answer({ changed, skipped, failed }, () => {
    const rest = [...(skipped > 0 ? [`${skipped} skipped`] : []), ...(failed > 0 ? [`${failed} failed`] : [])];
    out.line([`${plural(changed, "job")} changed`, ...rest].join(", "));
  });
  return failed > 0 ? EXIT.failed : EXIT.done;
}

function optionsOf({ limit, pace, reason }: BulkFlags, verb: BulkVerb) {
  if (pace !== undefined && verb !== "redrive") throw usage("--pace is for redrive", "leave it out");
  return {
    ...(limit === undefined ? {} : { limit: whole("--limit", limit) }),
    ...(pace === undefined ? {} : { pace: paceOf("--pace", pace) }),
    ...(reason === undefined ? {} : { reason }),
  };
}
