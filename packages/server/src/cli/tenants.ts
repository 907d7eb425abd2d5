import type { Command } from "commander";
import { buildNamed } from "./named.js";
import type { Act } from "./session.js";

export function build(command: Command, act: Act): void {
  buildNamed(command, act, {
    kind: "tenant",
    of: ({ tenants }) => tenants,
    flags: ["weight", "concurrency", "rate", "ingestRate", "ingestDepth"],
  });
}
