import type { Command } from "commander";
import { isPawlError } from "pawl";
import { rolesScriptForPsql } from "pawl/service";
import { recordAction } from "../access/audited-actions.js";
import { EXIT, type ExitCode } from "../exit.js";
import type { Act, CommandSession } from "../session.js";

interface MigrateOptions {
  readonly check?: boolean;
  readonly printRoles?: boolean;
  readonly schema: string;
}

export function build(command: Command, act: Act): void {
  command.option("--check", "only say whether there is anything to do");
  command.option("--print-roles", "print a script of database roles with no more rights than they need, for psql (docs/access.md)");
  command.option("--schema <schema>", "the schema that the roles are for", "pawl");
  act<MigrateOptions>(command, migrate);
}

/** Processes of the release before go on working meanwhile. Stopped half way, it goes on where it was the next time. */
async function migrate({ out, target, openTarget }: CommandSession, { check, printRoles, schema }: MigrateOptions): Promise<ExitCode> {
  if (printRoles === true) {
    const script = rolesScriptForPsql(schema);
    out.answer({ script }, () => {
      for (const line of script.trimEnd().split("\n")) out.line(line);
    });
    return EXIT.done;
  }
  const before = await schemaOf(() => openTarget(target));
  if (check === true || before.behind === false) {
    out.answer({ migrated: false, ...before }, () =>
      out.line(before.behind ? `the schema is at ${before.schema ?? "none"}, and behind` : `the schema is up to date: ${before.schema}`),
    );
    return before.behind ? EXIT.found : EXIT.done;
  }
  const pawl = await openTarget(target, { migrate: true, onWaiting: (what) => out.progress(what) });
  try {
    const { schema } = await pawl.info();
    // After it is done, for once: before, there may be no log.
    await recordAction(pawl, "store.migrate", { subject: `schema:${schema}` });
    out.answer({ migrated: true, behind: false, schema }, () => out.line(`migrated to schema ${schema}`));
  } finally {
    await pawl.close();
  }
  return EXIT.done;
}

async function schemaOf(
  open: () => ReturnType<CommandSession["openTarget"]>,
): Promise<{ readonly behind: boolean; readonly schema?: string | number }> {
  try {
    const pawl = await open();
    const { schema } = await pawl.info().finally(() => pawl.close());
    return { behind: false, schema };
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "store_missing") return { behind: true };
    if (!isPawlError(error, "schema_missing")) throw error;
    const { found } = error.details;
    return { behind: true, ...(typeof found === "string" || typeof found === "number" ? { schema: found } : {}) };
  }
}
