import { isPawlError } from "../../../packages/pawl/src/core/values/error.js";
import { nativePostgres, startEmbedded } from "../../../packages/pawl/src/store/postgres/embedded/index.js";
import type { StartedServer } from "./global-setup.js";

/** The Postgres that comes with npm, started the way users get it. */
export async function startEmbeddedPostgres(folder: string): Promise<StartedServer | string> {
  const native = findNative();
  if (!native.ok) return native.reason;
  // Deadlocks are provoked on purpose: a second each would be most of the run. Durability has tests of its own.
  const embedded = await startEmbedded(folder, { settings: { deadlock_timeout: "20ms", fsync: "off" } });
  const { host, port, user } = embedded.connection;
  const address = { host, port, user };
  return { server: { ...address, version: embedded.version, direct: address }, pid: embedded.pid, stop: () => embedded.release() };
}

/** In a clone the error's advice would be the wrong one. */
function findNative(): ReturnType<typeof nativePostgres> {
  try {
    return nativePostgres();
  } catch (error) {
    if (!isPawlError(error, "embedded_missing")) throw error;
    throw new Error("packages/embedded is not installed in this clone: run npm ci", { cause: error });
  }
}
