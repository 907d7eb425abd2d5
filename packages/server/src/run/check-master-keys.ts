import { setTimeout as pause } from "node:timers/promises";
import { isPawlError, type Pawl } from "pawl";
import { serviceOf } from "pawl/service";
import { ConfigError, whereOf } from "../config/problem.js";
import type { Configuration } from "../config/read.js";

/** ms between two looks at a store that went away during the start */
const RETRY_INTERVAL_MS = 1_000;

/**
 * Whether the master keys of the configuration unwrap the data keys of the store. A wrong one is refused at the start, since
 * every enqueue for a tenant that has a data key would fail. A service without any key goes on, and says what that means:
 * listings work without them.
 */
export async function checkMasterKeysFit(configuration: Configuration, pawl: Pawl, writeLine: (line: string) => void): Promise<void> {
  const isConfigured = configuration.settings["encryption.masterKeys"] !== undefined;
  const masterKeys = await (isConfigured
    ? readWhenReachable(() => serviceOf(pawl).encryption.status())
    : serviceOf(pawl)
        .encryption.status()
        .catch(() => []));
  const missing = masterKeys.filter(({ here }) => !here);
  if (missing.length === 0) return;
  const names = missing.map(({ master }) => master).join(", ");
  if (!isConfigured) {
    writeLine(
      `encryption  jobs are encrypted by master keys that are not here (${names}): they are shown as (encrypted); what is enqueued here is stored plain. See encryption.masterKeys`,
    );
    return;
  }
  const count = missing.reduce((sum, master) => sum + master.count, 0);
  throw new ConfigError([
    {
      where: whereOf(configuration, "encryption.masterKeys"),
      what: `these keys do not unwrap ${count} data keys of the store, which are wrapped by other master keys (${names})`,
      help: "give those master keys too, after the newest one",
    },
  ]);
}

/** The store answered a moment ago. If it goes away just now, this waits for it, as the rest of the start does. */
export async function readWhenReachable<T>(read: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await read();
    } catch (error) {
      if (!isPawlError(error, "store_unreachable")) throw error;
      await pause(RETRY_INTERVAL_MS);
    }
  }
}
