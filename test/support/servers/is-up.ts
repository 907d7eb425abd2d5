import type { ChildProcess } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";

/** Waits until the server of this process answers; throws when it ends first. */
export async function isUp(child: ChildProcess, config: pg.ClientConfig): Promise<void> {
  for (;;) {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error(`${child.spawnfile} ended with ${child.exitCode ?? child.signalCode}`);
    const client = new pg.Client(config);
    client.on("error", () => {}); // also rejects the call below
    try {
      await client.connect();
      return;
    } catch {
      await pause(20);
    } finally {
      await client.end().catch(() => {});
    }
  }
}
