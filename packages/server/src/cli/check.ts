import type { Command } from "commander";
import { ConfigError, type Problem } from "../config/problem.js";
import { readConfiguration, type Sources } from "../config/read.js";
import { Secrets } from "../secrets/secrets.js";
import { certificatePlaces } from "../serve/door.js";
import { storeTarget } from "../serve/store.js";
import { loadTaskFiles } from "../serve/task-files.js";
import { readCertificates } from "../tls/certificates.js";
import { configured } from "./configured.js";
import type { Act } from "./session.js";
import { sourcesOf, withSettings } from "./settings.js";

export function build(command: Command, act: Act): void {
  withSettings(command);
  act(command, () => configured(() => check(sourcesOf(command))));
}

/** `pawl check`: everything a start would find wrong with the configuration, without starting anything. */
async function check(sources: Sources): Promise<void> {
  const configuration = await readConfiguration(sources);
  const { settings, origin } = configuration;
  const secrets = new Secrets(sources.env);
  const places = certificatePlaces(settings, secrets);
  await allOf([
    () => storeTarget(configuration, secrets),
    ...(places === undefined ? [] : [() => readCertificates(places)]),
    ...(settings.tasks === undefined ? [] : [() => loadTaskFiles(settings.tasks ?? [], origin("tasks") ?? "tasks")]),
  ]);
  process.stdout.write(`the configuration is good${configuration.file === undefined ? "" : `: ${configuration.file}`}\n`);
}

/** Does each of them, and throws what is wrong with any together. */
async function allOf(looks: readonly (() => Promise<unknown>)[]): Promise<void> {
  const problems: Problem[] = [];
  for (const look of looks) {
    try {
      await look();
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      problems.push(...error.problems);
    }
  }
  if (problems.length > 0) throw new ConfigError(problems);
}
