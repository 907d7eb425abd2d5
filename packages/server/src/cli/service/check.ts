import type { Command } from "commander";
import { readConfiguration, type Sources } from "../../config/read.js";
import { compareWithStore } from "../../run/compare-with-store.js";
import { prepare } from "../../run/prepare.js";
import { Secrets } from "../../secrets/secrets.js";
import type { Act } from "../session.js";
import { sourcesOf, withSettings } from "../settings.js";
import { withConfiguration } from "./with-configuration.js";

export function build(command: Command, act: Act): void {
  withSettings(command);
  act(command, () => withConfiguration(() => check(sourcesOf(command))));
}

/** `pawl check`: everything a start would find wrong with the configuration, without starting or changing anything. */
async function check(sources: Sources): Promise<void> {
  const configuration = await readConfiguration(sources);
  const { notes, target } = await prepare(configuration, new Secrets(sources.env));
  for (const note of [...notes, ...(await compareWithStore(configuration, target))]) process.stderr.write(`note: ${note}\n`);
  process.stdout.write(`the configuration is good${configuration.file === undefined ? "" : `: ${configuration.file}`}\n`);
}
