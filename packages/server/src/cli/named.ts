import type { Command } from "commander";
import type { Named, Pawl, PolicyChanges, PolicyKind, StateCounts } from "pawl";
import { usage } from "./exit.js";
import { rate, whole } from "./flags.js";
import type { Act, Session } from "./session.js";
import type { Cell } from "./table.js";

/** A queue, task or tenant as its list shows it. */
export interface NamedView {
  readonly paused: boolean;
  readonly policy: object;
  readonly counts?: StateCounts;
}

export interface NamedNoun<K extends PolicyKind> {
  readonly kind: K;
  readonly of: (pawl: Pawl) => Named<K, NamedView>;
  /** which of the flags below `set` takes */
  readonly flags: readonly (keyof SetFlags)[];
}

interface SetFlags {
  readonly concurrency?: string;
  readonly rate?: string;
  readonly weight?: string;
  readonly weights?: string;
  readonly minimum?: string;
  readonly strict?: string;
  readonly aging?: string;
  readonly ingestRate?: string;
  readonly ingestDepth?: string;
}

const FLAGS: Readonly<Record<keyof SetFlags, readonly [flag: string, what: string]>> = {
  concurrency: ["--concurrency <count>", "most jobs running at a time, over all workers"],
  rate: ["--rate <rate>", "most jobs started per time: 100/s, 10/5m"],
  weight: ["--weight <number>", "its share beside other tenants"],
  weights: ["--weights <bands>", "shares by band: 9=10,5=3"],
  minimum: ["--minimum <bands>", "least parts of 1 by band: 2=0.1"],
  strict: ["--strict <yes|no>", "a band gets what the bands above it leave"],
  aging: ["--aging <time>", "most that the head of a lane waits behind others"],
  ingestRate: ["--ingest-rate <rate>", "most jobs that come in per time: 1000/s"],
  ingestDepth: ["--ingest-depth <count>", "most jobs that wait"],
};

/** Builds list, show, pause, resume and set of a noun: they are the same for queues, tasks and tenants. */
export function buildNamed<K extends PolicyKind>(command: Command, act: Act, noun: NamedNoun<K>): void {
  const { kind, of } = noun;
  act(
    command
      .command("list")
      .alias("ls")
      .description(`all ${kind}s${kind === "tenant" ? " that are paused or have a policy" : ""}`),
    async ({ out, pawl }) => {
      const views = await of(await pawl()).list();
      out.answer({ [`${kind}s`]: views }, () => {
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
        { text: kind.padEnd(FACTS), style: "dim" },
        { text: name as string, style: "bold" },
        view.paused ? { text: " paused", style: "yellow" } : "",
      );
      for (const [state, count] of Object.entries(view.counts ?? {})) if (count > 0) out.line({ text: state.padEnd(FACTS), style: "dim" }, count);
      for (const [rule, value] of Object.entries(view.policy)) out.line({ text: rule.padEnd(FACTS), style: "dim" }, inWords(value));
    });
  });
  for (const verb of ["pause", "resume"] as const) {
    const what = verb === "pause" ? "start no more of its jobs; what runs goes on" : "start its jobs again";
    act(command.command(`${verb} <${kind}s...>`).description(what), async ({ out, pawl }, _, ...names) => {
      const all = names.flat();
      for (const name of all) await of(await pawl())[verb](name);
      out.answer({ [verb === "pause" ? "paused" : "resumed"]: all }, () => all.forEach((name) => void out.line(`${name} ${verb}d`)));
    });
  }
  const set = command.command(`set <${kind}>`).description("change its policy; none takes a rule away");
  for (const name of noun.flags) set.option(...(FLAGS[name] as [string, string]));
  act<SetFlags>(set, async (session, flags, name) => {
    const changes = changesOf(flags);
    if (Object.keys(changes).length === 0) throw usage("nothing to set", `give one of ${noun.flags.map((flag) => FLAGS[flag][0]).join(", ")}`);
    const policy = await of(await session.pawl()).set(name as string, changes as PolicyChanges[K]);
    session.out.answer({ [kind]: name, policy }, () => tellPolicy(session, name as string, policy));
  });
}

function tellPolicy({ out }: Session, name: string, policy: object): void {
  const rules = Object.entries(policy).map(([rule, value]) => `${rule} ${inWords(value)}`);
  out.line(`${name}: ${rules.length === 0 ? "no policy" : rules.join(", ")}`);
}

function changesOf({ ingestRate, ingestDepth, ...flags }: SetFlags): object {
  const ingest = {
    ...(ingestRate === undefined || ingestRate === "none" ? {} : { rate: rate("--ingest-rate", ingestRate) }),
    ...(ingestDepth === undefined || ingestDepth === "none" ? {} : { depth: whole("--ingest-depth", ingestDepth) }),
  };
  const asked = ingestRate !== undefined || ingestDepth !== undefined;
  const rules = Object.entries(flags).flatMap(([name, text]) => {
    const read = READERS[name as keyof typeof READERS];
    return text === undefined || read === undefined ? [] : [[name, text === "none" ? null : read(text)]];
  });
  return { ...Object.fromEntries(rules), ...(asked ? { ingest: Object.keys(ingest).length === 0 ? null : ingest } : {}) };
}

/** as wide as the longest rule, and a gap */
const FACTS = 13;

const READERS = {
  concurrency: (text: string) => whole("--concurrency", text),
  rate: (text: string) => rate("--rate", text),
  weight: (text: string) => number("--weight", text),
  weights: (text: string) => bands("--weights", text),
  minimum: (text: string) => bands("--minimum", text),
  strict: (text: string) => yesNo("--strict", text),
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

function bands(flag: string, text: string): Readonly<Record<string, number>> {
  const pairs = text.split(",").map((pair) => pair.split("="));
  if (pairs.some(([band = "", value]) => !/^\d$/.test(band) || value === undefined))
    throw usage(`${flag}: ${text} is not a list of bands`, `write ${flag} 9=10,5=3`);
  return Object.fromEntries(pairs.map(([band, value]) => [band, number(flag, value as string)]));
}

const COUNTED = ["ready", "running", "scheduled", "blocked", "parked", "succeeded", "dead"] as const;

function headings(kind: PolicyKind): readonly string[] {
  return kind === "tenant" ? [kind, "paused", "policy"] : [kind, "paused", ...COUNTED, "policy"];
}

function row(kind: PolicyKind, view: NamedView): readonly Cell[] {
  const { paused, policy, counts } = view;
  const name = (view as unknown as Record<PolicyKind, string>)[kind];
  const rules = Object.entries(policy).map(([rule, value]) => `${rule} ${inWords(value)}`);
  return [
    name,
    paused ? { text: "paused", style: "yellow" } : "",
    ...(counts === undefined
      ? []
      : COUNTED.map((state): Cell => (state === "dead" && counts.dead > 0 ? { text: counts.dead, style: "red" } : counts[state]))),
    rules.join(", "),
  ];
}

function inWords(value: unknown): string {
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
