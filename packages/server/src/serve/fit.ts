import { setTimeout as pause } from "node:timers/promises";
import { isPawlError, type Pawl } from "pawl";
import { ConfigError, whereOf } from "../config/problem.js";
import type { Configuration } from "../config/read.js";

/** ms between two looks at a store that went away during the start */
const LOOK_EVERY = 1_000;

/**
 * Whether the master keys of the configuration unwrap the data keys of the store. A wrong one is refused at the start, since
 * every enqueue for a tenant that has a data key would fail. A service without any key goes on, and says what that means:
 * listings work without them.
 */
export async function checkMastersFit(configuration: Configuration, pawl: Pawl, say: (line: string) => void): Promise<void> {
  const given = configuration.settings["encryption.keys"] !== undefined;
  const masters = await (given ? untilRead(() => pawl.encryption.status()) : pawl.encryption.status().catch(() => []));
  const missing = masters.filter(({ here }) => !here);
  if (missing.length === 0) return;
  const names = missing.map(({ master }) => master).join(", ");
  if (!given) {
    say(
      `encryption  jobs are sealed by master keys that are not here (${names}): they are shown as (sealed); what is enqueued here is stored plain. See encryption.keys`,
    );
    return;
  }
  const count = missing.reduce((sum, master) => sum + master.count, 0);
  throw new ConfigError([
    {
      where: whereOf(configuration, "encryption.keys"),
      what: `these keys do not unwrap ${count} data keys of the store, which are wrapped by other master keys (${names})`,
      help: "give those master keys too, after the newest one",
    },
  ]);
}

/** The store answered a moment ago. If it goes away just now, this waits for it, as the rest of the start does. */
async function untilRead<T>(read: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await read();
    } catch (error) {
      if (!isPawlError(error, "store_unreachable")) throw error;
      await pause(LOOK_EVERY);
    }
  }
}
