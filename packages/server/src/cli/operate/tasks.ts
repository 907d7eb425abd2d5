import type { Command } from "commander";
import type { Act } from "../session.js";
import { buildPolicyCommands } from "./policy-commands.js";

export function build(command: Command, act: Act): void {
  buildPolicyCommands(command, act, {
    kind: "task",
    of: ({ tasks }) => tasks,
    flags: ["concurrency", "rate"],
  });
}
