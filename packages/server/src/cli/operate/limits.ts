import type { Command } from "commander";
import type { LimitsFilter, LimitView } from "pawl/service";
import { type PageFlags, pageOf, withPages } from "../flags.js";
import type { Act, CommandSession } from "../session.js";
import type { Cell } from "../table.js";
import { duration, fromNow } from "../text.js";

type LimitListFlags = LimitsFilter & PageFlags;

export function build(command: Command, act: Act): void {
  const list = command
    .command("list")
    .alias("ls")
    .description("keys of limits at which jobs wait, by tenant, limit and key")
    .option("--tenant <tenant>", "of this tenant")
    .option("--name <limit>", "of this limit of the tenant")
    .option("--key <key>", "this key of the limit alone");
  act<LimitListFlags>(withPages(list), listLimits);
}

async function listLimits({ out, pawl }: CommandSession, { tenant, name, key, ...flags }: LimitListFlags): Promise<void> {
  const filter: LimitsFilter = {
    ...(tenant === undefined ? {} : { tenant }),
    ...(name === undefined ? {} : { name }),
    ...(key === undefined ? {} : { key }),
  };
  const request = pageOf(flags);
  const page = await (await pawl()).limits.list(filter, request);
  out.answer(page, () => {
    const now = new Date();
    out.table(
      ["limit", "key", "tenant", "allows", "held", "waiting", "for", "next"],
      page.items.map((view) => rowOf(view, now)),
    );
    if (page.items.length === 0) out.note("no job waits at a key");
    if (page.next !== undefined) out.note(`more: --cursor ${page.next}`);
  });
}

function rowOf(view: LimitView, now: Date): readonly Cell[] {
  const { name, key, tenant, held, waiting, more, next } = view;
  return [name, key, tenant, allows(view), held, more === true ? `${waiting.toLocaleString("en")}+` : waiting, waitsFor(view, now), next.job];
}

/** "5 at a time, 100 per 1 min" */
function allows({ concurrency, serial, rate }: LimitView): string {
  return [
    ...(serial === true ? ["one by one"] : []),
    ...(concurrency === undefined ? [] : [`${concurrency.toLocaleString("en")} at a time`]),
    ...(rate === undefined ? [] : [`${rate.limit.toLocaleString("en")} per ${duration(rate.per)}`]),
  ].join(", ");
}

/** What the one in front waits for. */
function waitsFor({ next, pausedUntil }: LimitView, now: Date): Cell {
  if (pausedUntil !== undefined) return { text: `its pause to end ${fromNow(pausedUntil, now)}`, style: "yellow" };
  return { concurrency: "a slot", serial: "the serial slot", rate: "tokens", key_paused: "its pause to end" }[next.for];
}
