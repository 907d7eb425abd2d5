import type { Command } from "commander";
import type { Pawl } from "pawl";
import type { PolicyChanges, PolicyKind, PolicyOperator, StateCounts } from "pawl/service";
import { usage } from "../exit.js";
import { rate, whole } from "../flags.js";
import type { Act, CommandSession } from "../session.js";
import type { Cell } from "../table.js";

/** A queue, task or tenant as its list shows it. */
export interface PolicySubjectView {
  readonly paused: boolean;
  readonly policy: object;
  readonly counts?: StateCounts;
}

export interface PolicyCommands<K extends PolicyKind> {
  readonly kind: K;
  readonly of: (pawl: Pawl) => PolicyOperator<K, PolicySubjectView>;
  /** which of the flags below `update` takes */
  readonly flags: readonly (keyof UpdateFlags)[];
}

interface UpdateFlags {
  readonly concurrency?: string;
  readonly rate?: string;
  readonly weight?: string;
  readonly priorityWeights?: string;
  readonly priorityMinimum?: string;
  readonly strictPriority?: string;
  readonly aging?: string;
  readonly ingestRate?: string;
  readonly ingestDepth?: string;
}

const POLICY_FLAGS: Readonly<Record<keyof UpdateFlags, readonly [flag: string, what: string]>> = {
  concurrency: ["--concurrency <count>", "most jobs running at a time, over all workers"],
  rate: ["--rate <rate>", "most jobs started per time: 100/s, 10/5m"],
  weight: ["--weight <number>", "its share beside other tenants"],
  priorityWeights: ["--priority-weights <priorities>", "shares by priority: 9=10,5=3"],
  priorityMinimum: ["--priority-minimum <priorities>", "least parts of 1 by priority: 2=0.1"],
  strictPriority: ["--strict-priority <yes|no>", "a priority gets what the priorities above it leave"],
  aging: ["--aging <time>", "most that the head of a lane waits behind others"],
  ingestRate: ["--ingest-rate <rate>", "most jobs that come in per time: 1000/s"],
  ingestDepth: ["--ingest-depth <count>", "most jobs that wait"],
};

/** Builds list, show, pause, resume and update of a noun: they are the same for queues, tasks and tenants. */
export function buildPolicyCommands<K extends PolicyKind>(command: Command, act: Act, noun: PolicyCommands<K>): void {
  const { kind, of } = noun;
  act(
    command
      .command("list")
      .alias("ls")
      .description(`all ${kind}s${kind === "tenant" ? " that are paused or have a policy" : ""}`),
    async ({ out, pawl }) => {
      const page = await of(await pawl()).list();
      const views = page.items;
      out.answer(page, () => {
        out.table(
          headings(kind),
          views.map((view) => row(kind, view)),
        );
        if (views.length === 0) out.note(`no ${kind}s`);
      });
    },
  );
  act(command.command(`show <${kind}>`).description(`its ${kind === "tenant" ? "" : "counts and "}policy`), async ({ out, pawl }, _, name) => {
    const view = await of(await pawl()).get(name as string);
    out.answer(view, () => {
      out.line(
        { text: kind.padEnd(LABEL_WIDTH), style: "dim" },
        { text: name as string, style: "bold" },
        view.paused ? { text: " paused", style: "yellow" } : "",
      );
      for (const [state, count] of Object.entries(view.counts ?? {}))
        if (count > 0) out.line({ text: state.padEnd(LABEL_WIDTH), style: "dim" }, count);
      for (const [rule, value] of Object.entries(view.policy)) out.line({ text: rule.padEnd(LABEL_WIDTH), style: "dim" }, valueText(value));
    });
  });
  for (const verb of ["pause", "resume"] as const) {
    const what = verb === "pause" ? "start no more of its jobs; what runs goes on" : "start its jobs again";
    const pausing = command
      .command(`${verb} <${kind}s...>`)
      .description(what)
      .option("--reason <text>", `for the event claims.${verb}d, and the audit log`);
    act<{ readonly reason?: string }>(pausing, async ({ out, pawl }, { reason }, ...names) => {
      const all = names.flat();
      for (const name of all) await of(await pawl())[verb](name, reason);
      out.answer({ [verb === "pause" ? "paused" : "resumed"]: all }, () => all.forEach((name) => void out.line(`${name} ${verb}d`)));
    });
  }
  const update = command.command(`update <${kind}>`).description("change its policy; the value none removes a rule");
  for (const name of noun.flags) update.option(...(POLICY_FLAGS[name] as [string, string]));
  act<UpdateFlags>(update, async (session, flags, name) => {
    const changes = changesOf(flags);
    if (Object.keys(changes).length === 0)
      throw usage("nothing to change", `give one of ${noun.flags.map((flag) => POLICY_FLAGS[flag][0]).join(", ")}`);
    const policy = await of(await session.pawl()).update(name as string, changes as PolicyChanges[K]);
    session.out.answer({ [kind]: name, policy }, () => printPolicy(session, name as string, policy));
  });
}

function printPolicy({ out }: CommandSession, name: string, policy: object): void {
  const rules = Object.entries(policy).map(([rule, value]) => `${rule} ${valueText(value)}`);
  out.line(`${name}: ${rules.length === 0 ? "no policy" : rules.join(", ")}`);
}

function changesOf({ ingestRate, ingestDepth, ...flags }: UpdateFlags): object {
  const ingest = {
    ...(ingestRate === undefined || ingestRate === "none" ? {} : { rate: rate("--ingest-rate", ingestRate) }),
    ...(ingestDepth === undefined || ingestDepth === "none" ? {} : { depth: whole("--ingest-depth", ingestDepth) }),
  };
  const changesIngest = ingestRate !== undefined || ingestDepth !== undefined;
  const rules = Object.entries(flags).flatMap(([name, text]) => {
    const read = FLAG_READERS[name as keyof typeof FLAG_READERS];
    return text === undefined || read === undefined ? [] : [[name, text === "none" ? null : read(text)]];
  });
  return { ...Object.fromEntries(rules), ...(changesIngest ? { ingest: Object.keys(ingest).length === 0 ? null : ingest } : {}) };
}

/** as wide as the longest rule, and a gap */
const LABEL_WIDTH = 17;

const FLAG_READERS = {
  concurrency: (text: string) => whole("--concurrency", text),
  rate: (text: string) => rate("--rate", text),
  weight: (text: string) => number("--weight", text),
  priorityWeights: (text: string) => priorities("--priority-weights", text),
  priorityMinimum: (text: string) => priorities("--priority-minimum", text),
  strictPriority: (text: string) => yesNo("--strict-priority", text),
  aging: (text: string) => text,
} as const;

function number(flag: string, text: string): number {
  const value = Number(text);
  if (text.trim() !== "" && Number.isFinite(value)) return value;
  throw usage(`${flag}: ${text} is not a number`);
}

function yesNo(flag: string, text: string): boolean {
  if (text === "yes" || text === "no") return text === "yes";
  throw usage(`${flag}: ${text} is neither yes nor no`);
}

function priorities(flag: string, text: string): Readonly<Record<string, number>> {
  const pairs = text.split(",").map((pair) => pair.split("="));
  if (pairs.some(([priority = "", value]) => !/^\d$/.test(priority) || value === undefined))
    throw usage(`${flag}: ${text} is not a list of priorities`, `write ${flag} 9=10,5=3`);
  return Object.fromEntries(pairs.map(([priority, value]) => [priority, number(flag, value as string)]));
}

const COUNTED_STATES = ["ready", "running", "scheduled", "blocked", "parked", "succeeded", "dead"] as const;

function headings(kind: PolicyKind): readonly string[] {
  return kind === "tenant" ? [kind, "paused", "policy"] : [kind, "paused", ...COUNTED_STATES, "policy"];
}

function row(kind: PolicyKind, view: PolicySubjectView): readonly Cell[] {
  const { paused, policy, counts } = view;
  const name = (view as unknown as Record<PolicyKind, string>)[kind];
  const rules = Object.entries(policy).map(([rule, value]) => `${rule} ${valueText(value)}`);
  return [
    name,
    paused ? { text: "paused", style: "yellow" } : "",
    ...(counts === undefined
      ? []
      : COUNTED_STATES.map((state): Cell => (state === "dead" && counts.dead > 0 ? { text: counts.dead, style: "red" } : counts[state]))),
    rules.join(", "),
  ];
}

function valueText(value: unknown): string {
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
