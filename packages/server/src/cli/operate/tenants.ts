import type { Command } from "commander";
import { recordAction } from "../access/audited-actions.js";
import { confirm } from "../confirm.js";
import type { Act, CommandSession } from "../session.js";
import { plural } from "../text.js";
import { buildPolicyCommands } from "./policy-commands.js";

export function build(command: Command, act: Act): void {
  buildPolicyCommands(command, act, {
    kind: "tenant",
    of: ({ tenants }) => tenants,
    flags: ["weight", "concurrency", "rate", "ingestRate", "ingestDepth"],
  });
  act(command.command("export <tenant>").description("everything held of it, a line of JSON each"), exportTenant);
  act<{ yes?: boolean }>(command.command("purge <tenant>").description("delete everything of it, for good").option("--yes", "do not ask"), purge);
}

async function exportTenant({ out, pawl, signal }: CommandSession, _: object, tenant = ""): Promise<void> {
  const about = { subject: `tenant:${tenant}`, details: { tenant } };
  const { tenants } = await recordAction(await pawl(), "tenants.export", about);
  for await (const entry of tenants.export(tenant)) {
    signal.throwIfAborted();
    await out.streamEntry(entry, signal);
  }
}

async function purge(session: CommandSession, { yes }: { yes?: boolean }, tenant = ""): Promise<void> {
  const { out, pawl, signal } = session;
  await confirm(session, `delete everything of tenant ${tenant}, for good: its jobs, their history, schedules, API keys?`, yes);
  const { tenants } = await pawl();
  const done = await tenants.purge(tenant, {
    signal,
    onProgress: ({ jobs, running }) => out.progress(`${plural(jobs, "job")} deleted${running === 0 ? "" : `, ${running} asked to stop`}`),
  });
  out.answer({ tenant, ...done }, () => out.line(`${tenant}: ${plural(done.jobs, "job")} and ${plural(done.rest, "other row")} deleted`));
}
