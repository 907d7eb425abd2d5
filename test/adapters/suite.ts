import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { open, type Pawl, type Transaction, task } from "../../packages/pawl/src/index.js";
import { type Database, migratedDatabase, serverFor } from "../support/servers/servers.js";

/** One library people talk to Postgres with. */
export interface DatabaseLibrary {
  readonly name: string;
  connect(database: Database): Promise<LibraryApplication>;
}

/** An application on it, with a table of its own. */
export interface LibraryApplication {
  /** Runs `work` in a transaction of the library's, and rolls it back if that throws. */
  transaction<T>(work: (own: LibraryTransaction) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

export interface LibraryTransaction {
  readonly tx: Transaction;
  /** writes the application's own row, the way the library does it */
  saveCart(id: string): Promise<unknown>;
}

export const CARTS = "create table cart (id text primary key)";

class PaymentDeclined extends Error {}

/** What enqueueing in the caller's own transaction must do with every library. */
export function adapterSuite({ name, connect }: DatabaseLibrary): void {
  const server = serverFor("embedded18");
  describe.skipIf(!server.available)(`a job enqueued in a transaction of ${name}`, () => {
    const ran: string[] = [];
    const remind = task("cart.remind", { input: z.object({ cart: z.string() }) }, ({ cart }) => {
      ran.push(cart);
      return cart;
    });
    let database: Database;
    let application: LibraryApplication;
    let pawl: Pawl;

    beforeAll(async () => {
      database = await migratedDatabase();
      pawl = await open(database.url, { tasks: [remind] });
      application = await connect(database);
      await pawl.work({ concurrency: 5 });
    });
    afterAll(async () => {
      await application?.close();
      await pawl?.close();
      await database?.drop();
    });

    test("by a producer without the task's code has what others published of it", async () => {
      await using other = await open(database.url, { tasks: [task("cart.export", { queue: "exports", priority: 3 }, () => {})] });
      await using producer = await open(database.url, { maintenance: false });
      const job = await application.transaction(({ tx }) => producer.enqueue("cart.export", {}, { tx }));
      expect(await other.jobs.get(job)).toMatchObject({ queue: "exports", priority: 3 });
      await other.jobs.cancel(job); // nobody runs it, and the next tests count what waits
    });

    test("is not there before the commit; after it, the worker finds it by itself", async () => {
      const job = await application.transaction(async ({ tx, saveCart }) => {
        await saveCart("committed");
        const enqueued = await pawl.enqueue(remind, { cart: "committed" }, { tx });
        await expect(enqueued.get()).rejects.toMatchObject({ code: "job_unknown" });
        return enqueued;
      });
      // Nobody is told of it: this is the worker's own look, once a second.
      expect(await job.result("10s")).toBe("committed");
    });

    test("starts at once where the worker is told to look", async () => {
      const job = await application.transaction(({ tx }) => pawl.enqueue(remind, { cart: "woken" }, { tx }));
      pawl.wake();
      expect(await job.result("10s")).toBe("woken");
    });

    test("is gone with a rollback, as is the application's own write", async () => {
      const lost: string[] = [];
      const attempt = application.transaction(async ({ tx, saveCart }) => {
        await saveCart("rolled back");
        lost.push((await pawl.enqueue(remind, { cart: "rolled back" }, { tx })).id);
        throw new PaymentDeclined();
      });
      await expect(attempt).rejects.toBeInstanceOf(PaymentDeclined);
      await expect(pawl.jobs.get(lost[0] as string)).rejects.toMatchObject({ code: "job_unknown" });
      await application.transaction(({ saveCart }) => saveCart("rolled back"));
    });

    test("has a key that is free again after a rollback, and held after a commit", async () => {
      const options = { unique: "cart-1", delay: "1h" } as const;
      const enqueue = (tx?: Transaction) => pawl.enqueue(remind, { cart: "keyed" }, { ...options, ...(tx === undefined ? {} : { tx }) });
      await expect(
        application.transaction(async ({ tx }) => {
          await enqueue(tx);
          throw new PaymentDeclined();
        }),
      ).rejects.toBeInstanceOf(PaymentDeclined);
      const [first, again] = await application.transaction(async ({ tx }) => [await enqueue(tx), await enqueue(tx)] as const);
      const outside = await enqueue();
      expect([first.enqueued, again.enqueued, outside.enqueued]).toEqual(["created", "existing", "existing"]);
      expect(new Set([first.id, again.id, outside.id]).size).toBe(1);
      const moved = await application.transaction(({ tx }) =>
        pawl.enqueue(remind, { cart: "moved" }, { delay: "2h", unique: { key: "cart-1", onConflict: "replace" }, tx }),
      );
      expect(moved.replaced).toBe(first.id);
      await expect(
        application.transaction(({ tx }) => pawl.enqueue(remind, { cart: "x" }, { unique: { key: "cart-1", onConflict: "reject" }, tx })),
      ).rejects.toMatchObject({ code: "unique_key_taken" });
    });

    test("answers a repeated request with its first job", async () => {
      const enqueue = () =>
        application.transaction(({ tx }) => pawl.enqueue(remind, { cart: "asked" }, { idempotencyKey: "request-1", delay: "1h", tx }));
      const [first, again] = [await enqueue(), await enqueue()];
      expect([first.enqueued, again.enqueued, again.id]).toEqual(["created", "existing", first.id]);
    });

    test("waits for those it depends on, stored before it or with it", async () => {
      const before = await pawl.enqueue(remind, { cart: "parent before" });
      const child = await application.transaction(async ({ tx }) => {
        const beside = await pawl.enqueue(remind, { cart: "parent beside" }, { tx });
        return pawl.enqueue(remind, { cart: "child" }, { dependsOn: [before, beside], tx });
      });
      pawl.wake();
      await child.result("10s");
      const order = ["parent before", "parent beside", "child"].map((cart) => ran.indexOf(cart));
      expect(order.every((at) => at >= 0)).toBe(true);
      expect(Math.max(...order)).toBe(order[2]);
      const orphan = application.transaction(({ tx }) =>
        pawl.enqueue(remind, { cart: "orphan" }, { dependsOn: "01890000-0000-7000-8000-000000000000", tx }),
      );
      await expect(orphan).rejects.toMatchObject({ code: "dependency_unknown" });
    });

    test("keeps what it was given to the letter", async () => {
      const cart = `"quoted" \\ ? ?? $1 :name \n {a,b} NULL ü 🙂`;
      const job = await application.transaction(({ tx }) => pawl.enqueue(remind, { cart }, { tags: ["a?", "$2"], tenant: 'o"brien, ?', tx }));
      pawl.wake();
      expect(await job.result("10s")).toBe(cart);
      expect(await job.get()).toMatchObject({ tags: ["a?", "$2"], tenant: 'o"brien, ?' });
    });

    test("exists for every commit and for nothing else, when half of the transactions roll back (I2)", async () => {
      const carts = Array.from({ length: 60 }, (_, i) => `half-${i}`);
      const committed = carts.filter((_, i) => i % 2 === 0);
      const jobs = await Promise.allSettled(
        carts.map((cart) =>
          application.transaction(async ({ tx, saveCart }) => {
            await saveCart(cart);
            // Two by two, one plain and one that meets the guarded way in: both must follow the transaction.
            await pawl.enqueueMany(remind, [{ cart }], { tx });
            const keyed = await pawl.enqueue(remind, { cart: `${cart}-keyed` }, { unique: cart, tx });
            if (!committed.includes(cart)) throw new PaymentDeclined();
            return keyed;
          }),
        ),
      );
      pawl.wake();
      for (const job of jobs) if (job.status === "fulfilled") await job.value.result("10s");
      expect(jobs.filter(({ status }) => status === "fulfilled")).toHaveLength(committed.length);
      await expect.poll(() => pawl.counts()).toMatchObject({ ready: 0, running: 0, blocked: 0 });
      const expected = committed.flatMap((cart) => [cart, `${cart}-keyed`]).sort();
      expect(ran.filter((cart) => cart.startsWith("half-")).sort()).toEqual(expected);
    });
  });
}
