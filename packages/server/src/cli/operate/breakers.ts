import type { Command } from "commander";
import type { BreakerFilter, BreakerView } from "pawl/service";
import { parseCursor, whole } from "../flags.js";
import type { Act, CommandSession } from "../session.js";
import type { Cell } from "../table.js";
import { fromNow } from "../text.js";

interface BreakerFlags {
  readonly tenant: string;
}
interface BreakerListFlags extends Omit<BreakerFilter, "state"> {
  readonly state?: string;
  readonly limit: string;
  readonly after?: string;
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
    .option("--state <state>", "closed, checking, open or half_open")
    .option("-n, --limit <count>", "of a page", "50")
    .option("--after <tenant/task>", "the page after the one that ended so");
  act<BreakerListFlags>(list, listBreakers);

  for (const verb of ["open", "close", "reset"] as const) {
    const [description, outcome] = VERBS[verb];
    const one = command.command(`${verb} <task>`).description(description).option("--tenant <tenant>", "whose jobs of the task are meant", "default");
    act<BreakerFlags>(one, async ({ out, pawl }, { tenant }, task = "") => {
      const breaker = await (await pawl()).breakers[verb]({ tenant, task });
      out.answer({ breaker }, () => out.line(`the breaker of ${task} for ${tenant} ${outcome}`));
    });
  }
}

async function listBreakers({ out, pawl }: CommandSession, { tenant, task, state, limit, after }: BreakerListFlags): Promise<void> {
  const filter = { ...(tenant === undefined ? {} : { tenant }), ...(task === undefined ? {} : { task }), ...(state === undefined ? {} : { state }) };
  const page = { limit: whole("--limit", limit, 1, 1_000), ...(after === undefined ? {} : { after: parseCursor(after) }) };
  // A state that is none is told by whoever knows them.
  const { breakers, next } = await (await pawl()).breakers.list(filter as BreakerFilter, page);
  out.answer({ breakers, ...(next === undefined ? {} : { next }) }, () => {
    const now = new Date();
    out.table(
      ["task", "tenant", "state", "since", "tries again", "succeeded", "failed"],
      breakers.map((breaker) => rowOf(breaker, now)),
    );
    if (breakers.length === 0) out.note("no breaker has seen failures lately");
    if (next !== undefined) out.note(`more: --after ${next.tenant}/${next.task}`);
  });
}

function rowOf({ task, tenant, state, forced, since, probeAt, succeeded, failed }: BreakerView, now: Date): readonly Cell[] {
  const text = forced ? `${state} (by hand)` : state;
  const stateCell: Cell = state === "open" ? { text, style: "red" } : state === "closed" ? text : { text, style: "yellow" };
  return [task, tenant, stateCell, fromNow(since, now), probeAt === undefined ? "" : fromNow(probeAt, now), succeeded, failed];
}
