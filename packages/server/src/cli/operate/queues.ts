import type { Command } from "commander";
import type { Act } from "../session.js";
import { buildPolicyCommands } from "./policy-commands.js";

export function build(command: Command, act: Act): void {
  buildPolicyCommands(command, act, {
    kind: "queue",
    of: ({ queues }) => queues,
    flags: ["concurrency", "rate", "priorityWeights", "priorityMinimum", "strictPriority", "aging", "ingestRate", "ingestDepth"],
  });
}
