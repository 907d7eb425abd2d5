import type { Info, StateCounts } from "pawl";
import { plural } from "../words/amounts.js";

const ENGINES = { memory: "memory", postgres: "Postgres", embedded: "embedded Postgres", pglite: "PGlite" } as const;

export function engineName({ engine, version }: Pick<Info, "engine" | "version">): string {
  return engine === "memory" ? ENGINES.memory : `${ENGINES[engine]} ${version.split(" ")[0]}`;
}

/** What an acknowledged job survives. */
export function durabilityOf({ durability }: Pick<Info, "durability">): string {
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
export function durabilityInShort({ durability }: Pick<Info, "durability">): string {
  return { "power loss": "survives power loss", process: "power loss is not covered", none: "nothing survives" }[durability];
}

const UNFINISHED = ["ready", "running", "scheduled", "blocked", "parked"] as const;

export function unfinished(counts: StateCounts): number {
  return UNFINISHED.reduce((sum, state) => sum + counts[state], 0);
}

/** "12 unfinished jobs (2 ready, 10 scheduled)" */
export function unfinishedWords(counts: StateCounts): string {
  const parts = UNFINISHED.filter((state) => counts[state] > 0).map((state) => `${counts[state].toLocaleString("en")} ${state}`);
  return `${plural(unfinished(counts), "unfinished job")}${parts.length === 0 ? "" : ` (${parts.join(", ")})`}`;
}
