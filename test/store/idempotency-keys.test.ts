import pg from "pg";
import { expect, test } from "vitest";
import { open } from "../../packages/pawl/src/index.js";
import { SimulatedProcesses } from "../support/processes/simulated-processes.js";
import { describeOn, migratedDatabase } from "../support/servers/servers.js";

describeOn("embedded18", () => {
  test("an idempotency key stored by a version that kept no digest answers with its first job, whatever is asked for", async () => {
    await using processes = await SimulatedProcesses.open();
    const world = processes.start();
    const id = await world.add({ idempotencyKey: "r", input: "1" });
    await processes.column("update pawl.idempotency_key set digest = null returning id");
    expect(await world.enqueue({ idempotencyKey: "r", input: "2" })).toEqual([{ kind: "existing", id }]);
  });

  test("of fifty different jobs that two processes enqueue at once with one idempotency key, one is stored and the others are refused", async () => {
    await using processes = await SimulatedProcesses.open();
    const [here, there] = [processes.start(), processes.start()];
    const jobs = Array.from({ length: 50 }, (_, n) => here.newJob({ idempotencyKey: "r", input: String(n) }));
    const answers = (await Promise.all(jobs.map((job, n) => (n % 2 === 0 ? here : there).store.jobs.enqueue([job])))).flat();
    const created = answers.filter((answer) => answer.kind === "created");
    expect(created).toHaveLength(1);
    expect(answers.filter((answer) => answer.kind === "idempotencyKeyReused" && answer.first === created[0]?.id)).toHaveLength(49);
    expect(await processes.column("select count(*)::int from pawl.job")).toEqual([1]);
  });

  test("in a transaction of the caller's a reused idempotency key is refused, alone, among many, and across a commit", async () => {
    await using database = await migratedDatabase();
    await using pawl = await open(database.url);
    const client = new pg.Client(database.config);
    await client.connect();
    const inside = async <T>(work: () => Promise<T>): Promise<T> => {
      await client.query("begin");
      return work().finally(() => client.query("commit"));
    };
    const reused = { code: "idempotency_key_reused", details: { idempotencyKey: "r" } };
    const first = await inside(async () => {
      const job = await pawl.enqueue("order.confirm", { order: 7 }, { tx: client, idempotencyKey: "r" });
      await expect(pawl.enqueue("order.refund", { order: 7 }, { tx: client, idempotencyKey: "r" })).rejects.toMatchObject(reused);
      return job;
    });
    await inside(async () => {
      expect(await pawl.enqueue("order.confirm", { order: 7 }, { tx: client, idempotencyKey: "r" })).toMatchObject({
        id: first.id,
        enqueued: "existing",
      });
      const each = () => ({ idempotencyKey: "r" });
      await expect(pawl.enqueueMany("order.confirm", [{ order: 8 }], { tx: client, each })).rejects.toMatchObject(reused);
      await pawl.enqueueMany("order.confirm", [1, 2], { tx: client, idempotencyKey: "many" });
      await expect(pawl.enqueueMany("order.confirm", [1, 3], { tx: client, idempotencyKey: "many" })).rejects.toMatchObject({
        code: "idempotency_key_reused",
      });
    });
    await client.end();
    expect(await pawl.counts({ task: "order.confirm" })).toMatchObject({ ready: 3 });
    expect(await pawl.counts({ task: "order.refund" })).toMatchObject({ ready: 0 });
  });
});
