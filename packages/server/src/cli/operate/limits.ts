import type { Command } from "commander";
import type { LimitsFilter, LimitsOperator, LimitView } from "pawl/service";
import { usage } from "../exit.js";
import { whole } from "../flags.js";
import type { Act, CommandSession } from "../session.js";
import type { Cell } from "../table.js";
import { duration, fromNow } from "../text.js";

interface LimitListFlags {
  readonly tenant?: string;
  readonly name?: string;
  readonly key?: string;
  readonly limit: string;
  readonly after?: string;
}

type LimitCursor = NonNullable<Awaited<ReturnType<LimitsOperator["list"]>>["next"]>;

export function build(command: Command, act: Act): void {
  const list = command
    .command("list")
    .alias("ls")
    .description("keys of limits at which jobs wait, by tenant, limit and key")
    .option("--tenant <tenant>", "of this tenant")
    .option("--name <limit>", "of this limit of the tenant")
    .option("--key <key>", "this key of the limit alone")
    .option("-n, --limit <count>", "of a page", "50")
    .option("--after <tenant/limit/key>", "the page after the one that ended so");
  act<LimitListFlags>(list, listLimits);
}

async function listLimits({ out, pawl }: CommandSession, { tenant, name, key, limit, after }: LimitListFlags): Promise<void> {
  const filter: LimitsFilter = {
    ...(tenant === undefined ? {} : { tenant }),
    ...(name === undefined ? {} : { limit: name }),
    ...(key === undefined ? {} : { key }),
  };
  const page = { limit: whole("--limit", limit, 1, 1_000), ...(after === undefined ? {} : { after: parseLimitCursor(after) }) };
  const { limits, next } = await (await pawl()).limits.list(filter, page);
  out.answer({ limits, ...(next === undefined ? {} : { next }) }, () => {
    const now = new Date();
    out.table(
      ["limit", "key", "tenant", "allows", "held", "waiting", "for", "next"],
      limits.map((view) => rowOf(view, now)),
    );
    if (limits.length === 0) out.note("no job waits at a key");
    if (next !== undefined) out.note(`more: --after ${cursorText(next)}`);
  });
}

function rowOf(view: LimitView, now: Date): readonly Cell[] {
  const { limit, key, tenant, held, waiting, more, next } = view;
  return [limit, key, tenant, allows(view), held, more === true ? `${waiting.toLocaleString("en")}+` : waiting, waitsFor(view, now), next.job];
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

/** Names may hold slashes and spaces: what is shown can be pasted into a shell. */
function cursorText({ tenant, limit, key }: LimitCursor): string {
  return [tenant, limit, key].map(encodeURIComponent).join("/");
}

function parseLimitCursor(after: string): LimitCursor {
  try {
    const [tenant, limit, key, ...rest] = after.split("/").map(decodeURIComponent);
    if (tenant !== undefined && limit !== undefined && key !== undefined && rest.length === 0) return { tenant, limit, key };
  } catch {
    // Not what encoding makes.
  }
  throw usage(`--after: ${after} is not where a page ended`, "write it as the page before told it: --after default/account/a%20b");
}
