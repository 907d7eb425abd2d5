import type { Command } from "commander";
import type { BreakerFilter, BreakerView } from "pawl/service";
import { type PageFlags, pageOf, withPages } from "../flags.js";
import type { Act, CommandSession } from "../session.js";
import type { Cell } from "../table.js";
import { fromNow } from "../text.js";

interface BreakerFlags {
  readonly tenant: string;
}
interface BreakerListFlags extends Omit<BreakerFilter, "state">, PageFlags {
  readonly state?: string;
}

const VERBS = {
  open: ["start none of its jobs until it is closed or reset; no attempts are spent", "is open: none of its jobs are started"],
  close: ["start its jobs whatever they come to, until it is opened or reset", "is closed: its jobs are started whatever they come to"],
  reset: ["let it begin anew, closed, and open by itself", "begins anew, and opens by itself"],
} as const;

export function build(command: Command, act: Act): void {
  const list = command
    .command("list")
    .alias("ls")
    .description("those that are not simply closed, by tenant and task")
    .option("--tenant <tenant>", "of this tenant")
    .option("--task <task>", "of this task")
    .option("--state <state>", "closed, checking, open or half_open");
  act<BreakerListFlags>(withPages(list), listBreakers);

  for (const verb of ["open", "close", "reset"] as const) {
    const [description, outcome] = VERBS[verb];
    const one = command.command(`${verb} <task>`).description(description).option("--tenant <tenant>", "whose jobs of the task are meant", "default");
    act<BreakerFlags>(one, async ({ out, pawl }, { tenant }, task = "") => {
      const breaker = await (await pawl()).breakers[verb]({ tenant, task });
      out.answer({ breaker }, () => out.line(`the breaker of ${task} for ${tenant} ${outcome}`));
    });
  }
}

async function listBreakers({ out, pawl }: CommandSession, { tenant, task, state, ...flags }: BreakerListFlags): Promise<void> {
  const filter = { ...(tenant === undefined ? {} : { tenant }), ...(task === undefined ? {} : { task }), ...(state === undefined ? {} : { state }) };
  const request = pageOf(flags);
  // The library refuses a state that does not exist.
  const page = await (await pawl()).breakers.list(filter as BreakerFilter, request);
  out.answer(page, () => {
    const now = new Date();
    out.table(
      ["task", "tenant", "state", "since", "tries again", "succeeded", "failed"],
      page.items.map((breaker) => rowOf(breaker, now)),
    );
    if (page.items.length === 0) out.note("no breaker has seen failures lately");
    if (page.next !== undefined) out.note(`more: --cursor ${page.next}`);
  });
}

function rowOf({ task, tenant, state, forced, since, probeAt, succeeded, failed }: BreakerView, now: Date): readonly Cell[] {
  const text = forced ? `${state} (by hand)` : state;
  const stateCell: Cell = state === "open" ? { text, style: "red" } : state === "closed" ? text : { text, style: "yellow" };
  return [task, tenant, stateCell, fromNow(since, now), probeAt === undefined ? "" : fromNow(probeAt, now), succeeded, failed];
}
