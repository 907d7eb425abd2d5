import type { PawlInfo, StateCounts } from "pawl/service";
import { plural } from "../text/amounts.js";

const ENGINES: Readonly<Record<string, string>> = { postgres: "Postgres", embedded: "embedded Postgres", pglite: "PGlite" };

export function engineName({ engine, version }: Pick<PawlInfo, "engine" | "version">): string {
  const name = ENGINES[engine];
  return name === undefined ? engine : `${name} ${version.split(" ")[0]}`;
}

/** What an acknowledged job survives. */
export function durabilityOf({ durability }: Pick<PawlInfo, "durability">): string {
  switch (durability) {
    case "power loss":
      return "what is enqueued survives a crash and a power loss";
    case "process":
      return "what is enqueued survives a crash, but power loss is not covered";
    case "none":
      return "nothing survives the process";
  }
}

/** The same, where there is room for little. */
export function durabilityInShort({ durability }: Pick<PawlInfo, "durability">): string {
  return { "power loss": "survives power loss", process: "power loss is not covered", none: "nothing survives" }[durability];
}

const UNFINISHED_STATES = ["ready", "running", "scheduled", "blocked", "parked"] as const;

export function unfinished(counts: StateCounts): number {
  return UNFINISHED_STATES.reduce((sum, state) => sum + counts[state], 0);
}

/** "12 unfinished jobs (2 ready, 10 scheduled)" */
export function unfinishedText(counts: StateCounts): string {
  const parts = UNFINISHED_STATES.filter((state) => counts[state] > 0).map((state) => `${counts[state].toLocaleString("en")} ${state}`);
  return `${plural(unfinished(counts), "unfinished job")}${parts.length === 0 ? "" : ` (${parts.join(", ")})`}`;
}
