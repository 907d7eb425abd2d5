import type { Command } from "commander";
import { type ApiKeyView, type ApiKeyWithSecret, type Grant, ROLES, serviceOf } from "pawl/service";
import { gather, type PageFlags, pageOf, withPages } from "../flags.js";
import type { Act, CommandSession } from "../session.js";
import type { Cell } from "../table.js";

interface CreateKeyFlags {
  readonly role: readonly string[];
  readonly tenant?: string;
  readonly task?: readonly string[];
  readonly queue?: readonly string[];
  readonly expiresIn?: string;
}

export function build(command: Command, act: Act): void {
  act<CreateKeyFlags>(
    command
      .command("create <name>")
      .description("make a key, and show it this once")
      .requiredOption("--role <role>", `what it may do: ${ROLES.join(", ")}; several if given again`, gather)
      .option("--tenant <tenant>", "whose it is; left out: it acts for the whole store")
      .option("--task <pattern>", "only these tasks; * stands for anything; several if given again", gather)
      .option("--queue <pattern>", "only these queues", gather)
      .option("--expires-in <duration>", "how long it is valid, such as 90d"),
    create,
  );
  act<PageFlags>(withPages(command.command("list").alias("ls").description("API keys, newest first")), list);
  act<{ keepOldFor?: string }>(
    command
      .command("rotate <id>")
      .description("give a key a new secret, and show it this once")
      .option("--keep-old-for <duration>", "how long the old secret is still valid (1d)"),
    rotate,
  );
  act<object>(command.command("revoke <id>").description("end a key for good, everywhere within 5 s"), revoke);
}

async function create({ out, pawl }: CommandSession, { role, tenant, task, queue, expiresIn }: CreateKeyFlags, name = ""): Promise<void> {
  const { apiKeys } = serviceOf(await pawl());
  const grants = role.map((one) => ({
    role: one,
    ...(task === undefined ? {} : { tasks: task }),
    ...(queue === undefined ? {} : { queues: queue }),
  }));
  const created = await apiKeys.create({
    name,
    // What is no role is told by the library, which knows what was meant.
    grants: grants as readonly Grant[],
    ...(tenant === undefined ? {} : { tenant }),
    ...(expiresIn === undefined ? {} : { expiresIn: expiresIn as `${number}d` }),
  });
  show(out, created);
}

async function list({ out, pawl }: CommandSession, flags: PageFlags): Promise<void> {
  const request = pageOf(flags);
  const page = await serviceOf(await pawl()).apiKeys.list({}, request);
  out.answer(page, () => {
    out.table(["id", "name", "tenant", "may", "created", "used", "ends"], page.items.map(rowOf));
    if (page.items.length === 0) out.note("no keys");
    if (page.next !== undefined) out.note(`more: pawl api-keys list --cursor ${page.next}`);
  });
}

async function rotate({ out, pawl }: CommandSession, { keepOldFor }: { keepOldFor?: string }, id = ""): Promise<void> {
  const { apiKeys } = serviceOf(await pawl());
  show(out, await apiKeys.rotate(id, keepOldFor === undefined ? {} : { keepOldFor: keepOldFor as `${number}d` }));
}

async function revoke({ out, pawl }: CommandSession, _: object, id = ""): Promise<void> {
  const key = await serviceOf(await pawl()).apiKeys.revoke(id);
  out.answer(key, () => out.line(`revoked ${key.id} (${key.name}); it is refused everywhere within 5 s`));
}

function show(out: CommandSession["out"], { key, secret }: ApiKeyWithSecret): void {
  out.answer({ key, secret }, () => {
    out.line(secret);
    out.note(`key ${key.id} (${key.name}) is shown this once: keep it where secrets are kept`);
  });
}

function rowOf({ id, name, tenant, grants, createdAt, lastUsedAt, expiresAt, revokedAt }: ApiKeyView): readonly Cell[] {
  const ends = revokedAt !== undefined ? `revoked ${day(revokedAt)}` : expiresAt === undefined ? "" : day(expiresAt);
  return [id, name, tenant ?? "(all)", grants.map(grantText).join("; "), day(createdAt), lastUsedAt === undefined ? "never" : day(lastUsedAt), ends];
}

function grantText({ role, tasks, queues }: Grant): string {
  const parts = [tasks === undefined ? "" : ` tasks ${tasks.join(",")}`, queues === undefined ? "" : ` queues ${queues.join(",")}`];
  return role + parts.join("");
}

function day(date: Date): string {
  return new Date(date).toISOString().slice(0, 16).replace("T", " ");
}
