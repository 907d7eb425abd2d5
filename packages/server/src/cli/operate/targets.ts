import type { Command } from "commander";
import type { TargetReference, TargetView, TargetWithSecret } from "pawl/service";
import { confirm } from "../confirm.js";
import { type PageFlags, pageOf, whole, withPages } from "../flags.js";
import type { Act, CommandSession } from "../session.js";
import type { Cell } from "../table.js";

interface PushTargetFlags {
  readonly tenant?: string;
}

const withTenant = (command: Command): Command => command.option("--tenant <tenant>", "whose target it is, if not the default tenant's");
const targetRef = (task: string | undefined, { tenant }: PushTargetFlags): TargetReference => ({
  task: task as string,
  ...(tenant === undefined ? {} : { tenant }),
});

export function build(command: Command, act: Act): void {
  const list = command.command("list").alias("ls").description("by tenant and task").option("--tenant <tenant>", "of this tenant");
  act<PushTargetFlags & PageFlags>(withPages(list), listTargets);

  const put = withTenant(command.command("put <task> <url>").description("deliver its jobs there; the secret of a new one is shown this once"))
    .option("--concurrency <count>", "deliveries at a time, of each process (10)")
    .option("--timeout <duration>", "how long one may take to be answered (15s)");
  act<PushTargetFlags & { concurrency?: string; timeout?: string }>(
    put,
    async ({ out, pawl }, { tenant, concurrency, timeout }, task = "", url = "") => {
      const options = {
        url,
        ...(tenant === undefined ? {} : { tenant }),
        ...(concurrency === undefined ? {} : { concurrency: whole("--concurrency", concurrency, 1, 1_000) }),
        ...(timeout === undefined ? {} : { timeout: timeout as `${number}s` }),
      };
      show(out, await (await pawl()).targets.put(task, options));
    },
  );

  const rotate = withTenant(command.command("rotate <task>").description("give it a new secret, and show it this once")).option(
    "--keep-old-for <duration>",
    "how long deliveries are also signed with the old secret (1d)",
  );
  act<PushTargetFlags & { keepOldFor?: string }>(rotate, async ({ out, pawl }, flags, task) => {
    const how = flags.keepOldFor === undefined ? {} : { keepOldFor: flags.keepOldFor as `${number}d` };
    show(out, await (await pawl()).targets.rotate(targetRef(task, flags), how));
  });

  const deletion = withTenant(command.command("delete <task>").description("deliver no more there; its jobs wait")).option("-y, --yes", "do not ask");
  act<PushTargetFlags & { yes?: boolean }>(deletion, async (session, flags, task) => {
    await confirm(session, `delete the target of ${task}?`, flags.yes);
    await (await session.pawl()).targets.delete(targetRef(task, flags));
    session.out.answer({ target: task, deleted: true }, () => session.out.line(`${task} has no target any more; its jobs wait for a worker`));
  });
}

async function listTargets({ out, pawl }: CommandSession, { tenant, ...flags }: PushTargetFlags & PageFlags): Promise<void> {
  const request = pageOf(flags);
  const page = await (await pawl()).targets.list(tenant === undefined ? {} : { tenant }, request);
  out.answer(page, () => {
    out.table(["task", "tenant", "url", "at a time", "timeout", ""], page.items.map(rowOf));
    if (page.items.length === 0) out.note("no targets");
    if (page.next !== undefined) out.note(`more: --cursor ${page.next}`);
  });
}

function rowOf({ task, tenant, url, concurrency, timeout, goneAt }: TargetView): readonly Cell[] {
  return [task, tenant, url, concurrency, `${timeout / 1_000} s`, goneAt === undefined ? "" : { text: "wants no more", style: "yellow" }];
}

function show(out: CommandSession["out"], { target, secret }: TargetWithSecret): void {
  out.answer({ target, ...(secret === undefined ? {} : { secret }) }, () => {
    if (secret === undefined) {
      out.line(`${target.task} goes to ${target.url}; its secret is the one it had`);
      return;
    }
    out.line(secret);
    out.note(`the secret of ${target.task} is shown this once: give it to the receiver, which checks what is signed with it`);
  });
}
