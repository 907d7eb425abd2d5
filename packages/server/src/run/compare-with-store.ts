import { isPawlError, open, type Pawl } from "pawl";
import { reasonOf } from "../config/problem.js";
import type { Configuration } from "../config/read.js";
import { checkMasterKeysFit } from "./check-master-keys.js";
import { checkPepperFits } from "./check-pepper.js";
import type { StoreToOpen } from "./open-store.js";

/** ms that a look at the store may wait for it: whoever checks a configuration may do so where there is none */
const MAX_WAIT_MS = 3_000;

/**
 * Whether the secrets of the configuration are those of its store, for a look that changes nothing there. Only of a Postgres: in a folder a
 * server would have to be started. A wrong secret is a `ConfigError`; the answer says which could not be looked at.
 */
export async function compareWithStore(configuration: Configuration, { url, options }: StoreToOpen): Promise<readonly string[]> {
  const { "apiKeys.pepper": pepper, "encryption.masterKeys": masterKeys } = configuration.settings;
  if ((pepper === undefined && masterKeys === undefined) || !/^postgres(ql)?:/i.test(url)) return [];
  const notes: string[] = [];
  let pawl: Pawl;
  try {
    const patient = { ...options.postgres, startupWait: MAX_WAIT_MS };
    pawl = await open(url, { ...options, postgres: patient, migrate: false, maintenance: false, allowUnknownTasks: true });
  } catch (error) {
    if (!isPawlError(error)) throw error;
    return [`the secrets were not compared with those of the store: ${reasonOf(error)}`];
  }
  try {
    if (masterKeys !== undefined) await checkMasterKeysFit(configuration, pawl, (line) => notes.push(line));
    await checkPepperFits(configuration, pawl, (line) => notes.push(line));
    return notes;
  } finally {
    await pawl.close();
  }
}
