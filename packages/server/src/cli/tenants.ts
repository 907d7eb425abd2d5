import type { Command } from "commander";
import { oneAction } from "./audited.js";
import { confirm } from "./confirm.js";
import { buildNamed } from "./named.js";
import type { Act, Session } from "./session.js";

export function build(command: Command, act: Act): void {
  buildNamed(command, act, {
    kind: "tenant",
    of: ({ tenants }) => tenants,
    flags: ["weight", "concurrency", "rate", "ingestRate", "ingestDepth"],
  });
  act(command.command("export <tenant>").description("everything held of it, a line of JSON each"), exportTenant);
  act<{ yes?: boolean }>(
    command.command("purge <tenant>").description("let everything of it go, for good").option("--yes", "without being asked"),
    purge,
  );
}

async function exportTenant({ out, pawl, signal }: Session, _: object, tenant = ""): Promise<void> {
  const about = { subject: `tenant:${tenant}`, details: { tenant } };
  const { tenants } = await oneAction(await pawl(), "tenants.export", about);
  for await (const entry of tenants.export(tenant)) {
    signal.throwIfAborted();
    await out.flowing(entry, signal);
  }
}

async function purge(session: Session, { yes }: { yes?: boolean }, tenant = ""): Promise<void> {
  const { out, pawl, signal } = session;
  await confirm(session, `Everything of tenant ${tenant} will be gone: its jobs, their history, schedules, keys.`, yes);
  const { tenants } = await pawl();
  const done = await tenants.purge(tenant, {
    signal,
    onProgress: ({ jobs, running }) => out.progress(`${jobs} jobs gone${running === 0 ? "" : `, ${running} told to stop`}`),
  });
  out.answer({ tenant, ...done }, () => out.line(`${tenant}: ${done.jobs} jobs gone, and ${done.rest} other rows`));
}
