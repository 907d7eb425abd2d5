import type { Command } from "commander";
import { isPawlError, type PawlError } from "pawl";
import { CHECKS, type Check, type Finding } from "pawl/service";
import { EXIT, type ExitCode } from "../exit.js";
import type { Act, CommandSession } from "../session.js";

interface DoctorFlags {
  readonly overdueAfter: string;
  readonly quiet?: boolean;
}

export function build(command: Command, act: Act): void {
  command
    .option("--overdue-after <time>", "how long a transaction may be open, a lease expired or a duty late before it is reported", "1m")
    .option("-q, --quiet", "print nothing if nothing is wrong, for cron");
  act<DoctorFlags>(command, doctor);
}

/** What each check is about, for those that found nothing. */
const HEALTHY_LINES: Readonly<Record<Check, string>> = {
  clock: "the clocks agree",
  horizon: "nothing holds back the clearing of old rows",
  idle_transaction: "no transaction is left open",
  bloat: "no table is bloated",
  partitions: "there are partitions for the months to come",
  leases: "every lease is held by somebody",
  maintenance: "maintenance is done",
  versions: "one version is at work",
  wake_ups: "wakeups arrive",
  unserved: "every lane with ready jobs has a worker",
  stuck: "no handler is stuck",
};

async function doctor(session: CommandSession, { overdueAfter, quiet }: DoctorFlags): Promise<ExitCode> {
  const { out } = session;
  const findings = await findingsOf(session, overdueAfter);
  const healthy = findings.length === 0;
  out.answer({ healthy, findings }, () => {
    if (healthy && quiet === true) return;
    for (const check of CHECKS) {
      const found = findings.filter((finding) => finding.check === check);
      if (found.length === 0 && quiet !== true) out.line({ text: "✓ ", style: "green" }, { text: HEALTHY_LINES[check], style: "dim" });
      for (const finding of found) printFinding(session, finding);
    }
  });
  return healthy ? EXIT.done : EXIT.found;
}

function schemaFinding({ code, details, help }: PawlError): Pick<Finding, "found" | "costs" | "mend"> | undefined {
  const found = `the database is at schema ${details.found}, this version of Pawl knows ${details.known}`;
  if (code === "schema_newer") return { found, costs: "this version cannot work on it", mend: "upgrade this machine's Pawl" };
  if (code === "schema_missing") return { found, costs: "this version cannot work on it before it is migrated", mend: "run pawl migrate" };
  if (code === "schema_unreleased")
    return { found: "its schema was made by a Pawl from before the first release", costs: "this version cannot work on it", mend: help };
  return undefined;
}

/** A schema that is behind or ahead is a finding too, and the only one that can be had then. */
async function findingsOf({ pawl }: CommandSession, overdueAfter: string): Promise<readonly Finding[]> {
  try {
    return await (await pawl()).doctor({ overdueAfter });
  } catch (error) {
    const finding = isPawlError(error) ? schemaFinding(error) : undefined;
    if (finding === undefined) throw error;
    return [{ check: "versions", level: "critical", ...finding }];
  }
}

function printFinding({ out }: CommandSession, { level, check, found, costs, mend }: Finding): void {
  out.line(
    { text: level === "critical" ? "✗ " : "! ", style: level === "critical" ? "red" : "yellow" },
    { text: `${check}: `, style: "bold" },
    found,
  );
  out.line({ text: "    costs  ", style: "dim" }, costs);
  out.line({ text: "    mend   ", style: "dim" }, mend);
}
