import { createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { Command } from "commander";
import { type AuditOutcome, type AuditView, serviceOf } from "pawl/service";
import { type AnchorReport, readAnchors } from "../../audit/anchor.js";
import { CliError, EXIT, type ExitCode } from "../exit.js";
import { type PageFlags, pageOf, withPages } from "../flags.js";
import type { Act, CommandSession } from "../session.js";

interface ListAuditFlags extends PageFlags {
  readonly tenant?: string;
  readonly actor?: string;
  readonly action?: string;
  readonly outcome?: string;
  readonly subject?: string;
  readonly since?: string;
  readonly until?: string;
}

interface VerifyAuditFlags {
  readonly anchors?: string;
  readonly key?: string;
}

export function build(command: Command, act: Act): void {
  act<ListAuditFlags>(
    withPages(
      command
        .command("list")
        .alias("ls")
        .description("who did what, and who was not let; newest first")
        .option("--tenant <tenant>", "whose log; left out: that of the store as a whole")
        .option("--actor <actor>", "such as key:…, cli:…")
        .option("--action <action>", "such as jobs.cancel")
        .option("--outcome <outcome>", "allowed or denied")
        .option("--subject <subject>", "such as job:…")
        .option("--since <time>", "from then on, in ISO 8601")
        .option("--until <time>", "before then"),
    ),
    list,
  );
  act<VerifyAuditFlags>(
    command
      .command("verify")
      .description("find what was edited, removed or cut off")
      .option("--anchors <file>", "what the service wrote down of it")
      .option("--key <file>", "PEM of the key that anchors are signed with, its public half is enough"),
    verify,
  );
}

async function list({ out, pawl }: CommandSession, flags: ListAuditFlags): Promise<void> {
  const { tenant, actor, action, subject, since, until, outcome } = flags;
  const filter = Object.fromEntries(
    Object.entries({ tenant, actor, action, subject, since, until, outcome }).filter(([, value]) => value !== undefined),
  );
  const request = pageOf(flags);
  const page = await serviceOf(await pawl()).audit.list(filter as { outcome?: AuditOutcome }, request);
  out.answer(page, () => {
    out.table(["seq", "at", "who", "did", "to", "", "from"], page.items.map(rowOf));
    if (page.items.length === 0) out.note("no entries");
    if (page.next !== undefined) out.note(`more: --cursor ${page.next}`);
  });
}

function rowOf({ seq, at, actor, action, subject, outcome, address }: AuditView): readonly string[] {
  return [String(seq), new Date(at).toISOString(), actor, action, subject ?? "", outcome, address ?? ""];
}

/** Exit code 5 where anything is wrong, so that a nightly job notices. */
async function verify({ out, pawl }: CommandSession, { anchors: file, key }: VerifyAuditFlags): Promise<ExitCode> {
  const anchors = await anchorsOf(file, key);
  const report = await serviceOf(await pawl()).audit.verify({ anchors: anchors?.anchoredHeads ?? [] });
  const ok = report.ok && anchors?.brokenAt === undefined;
  const anchorReport = anchors === undefined ? {} : { anchors: { lines: anchors.lines, at: anchors.at, brokenAt: anchors.brokenAt } };
  out.answer({ ...report, ok, ...anchorReport }, () => {
    if (anchors?.brokenAt !== undefined) out.line(`anchors_broken_at=${anchors.brokenAt} in ${file}`);
    for (const { tenant, seq, why } of report.faults)
      out.line(`${why} broken_at=${seq} in the log of ${tenant === undefined ? "the store" : `tenant ${tenant}`}`);
    if (ok)
      out.line(
        `whole: ${report.entries} entries in ${report.chains} logs${anchors === undefined ? "" : `, held against ${anchors.lines} anchors, the last of ${anchors.at}`}`,
      );
    if (report.caveat !== undefined) out.note(`${report.caveat}${anchors === undefined ? ": --anchors and --key" : ""}`);
  });
  return ok ? EXIT.done : EXIT.found;
}

async function anchorsOf(file: string | undefined, key: string | undefined): Promise<AnchorReport | undefined> {
  if (file === undefined && key === undefined) return undefined;
  if (file === undefined || key === undefined) throw new CliError(EXIT.usage, "usage", "--anchors and --key are only of use together", "give both");
  return readAnchors(await textOf(file), publicKey(await textOf(key), key));
}

async function textOf(path: string): Promise<string> {
  return readFile(path, "utf8").catch((error: Error) => {
    throw new CliError(EXIT.failed, "file_unreadable", `${path} cannot be read: ${error.message}`, "check the path");
  });
}

function publicKey(pem: string, path: string): KeyObject {
  try {
    return createPublicKey(pem.includes("PRIVATE") ? createPrivateKey(pem) : pem);
  } catch {
    throw new CliError(EXIT.failed, "key_invalid", `${path} holds no key`, "give the PEM of an Ed25519 key");
  }
}
