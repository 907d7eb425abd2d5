import { expect, it } from "vitest";
import type { LimitKeyId } from "../../../core/limits/limit-rule.js";
import type { Driver, DriverTransaction } from "../drivers/driver.js";
import { foreignDb, HandlerTransaction, openDb, storeDb, type WriteTransaction } from "./db.js";

const KEY = "acme\u0001per key\u0001k" as LimitKeyId;

/** A driver whose transactions do nothing but begin and commit. */
function recordingDriver(log: string[]): Driver {
  const tx: DriverTransaction = { query: async () => [], run: async () => ({ rows: [] }) };
  const driver: Pick<Driver, "transaction"> = {
    async transaction(work) {
      const answer = await work(tx);
      log.push("commit");
      return answer;
    },
  };
  return driver as Driver;
}

function recordingStore(log: string[]) {
  return storeDb(openDb(recordingDriver(log), { location: "here" }), async (limitChecks) => void log.push(`admit at ${[...limitChecks].length}`));
}

it("jobs are admitted at the limit keys of a transaction once it has committed", async () => {
  const log: string[] = [];
  const db = recordingStore(log);
  expect(await db.transaction(async (tx) => tx.limitChecks.add(KEY).size)).toBe(1);
  expect(log).toEqual(["commit", "admit at 1"]);
});

it("a transaction without limit checks, and one that failed, admit nobody", async () => {
  const log: string[] = [];
  const db = recordingStore(log);
  await db.transaction(async () => undefined);
  await expect(
    db.transaction(async (tx) => {
      tx.limitChecks.add(KEY);
      throw new Error("no");
    }),
  ).rejects.toThrow("no");
  expect(log).toEqual(["commit"]);
});

it("limit checks that are written within a handler's transaction are its own, and those within a caller's are nobody's", () => {
  const db = openDb(recordingDriver([]), { location: "here" });
  const own: WriteTransaction = { query: async () => [], run: async () => ({ rows: [] }), limitChecks: new Set() };
  foreignDb(db, new HandlerTransaction(own)).limitChecks.add(KEY);
  foreignDb(db, { query: async () => ({ rows: [] }) }).limitChecks.add("other" as LimitKeyId);
  expect([...own.limitChecks]).toEqual([KEY]);
});
