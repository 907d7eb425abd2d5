import type { Command } from "commander";
import { buildNamed } from "./named.js";
import type { Act } from "./session.js";

export function build(command: Command, act: Act): void {
  buildNamed(command, act, {
    kind: "queue",
    of: ({ queues }) => queues,
    flags: ["concurrency", "rate", "weights", "minimum", "strict", "aging", "ingestRate", "ingestDepth"],
  });
}
