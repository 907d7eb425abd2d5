import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { portConnection } from "../../../packages/pawl/src/store/postgres/drivers/pglite-client.js";

/** Runs three statements through a port to PGlite when told to, and raises a flag that a blocked thread can wait for. */
const { port, done } = workerData as { port: MessagePort; done: Int32Array };
const query = portConnection(port);

parentPort?.once("message", async () => {
  for (const n of [1, 2, 3]) await query("insert into numbers values ($1::int4)", [n]);
  Atomics.store(done, 0, 1);
  Atomics.notify(done, 0);
});
parentPort?.postMessage("loaded");
