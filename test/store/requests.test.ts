import pg from "pg";
import { expect, test } from "vitest";
import { open } from "../../packages/pawl/src/index.js";
import { Processes } from "../support/processes.js";
import { describeOn, migratedDatabase } from "../support/servers.js";

describeOn("embedded18", () => {
  test("a request id stored by a version that kept no digest answers with its first job, whatever is asked for", async () => {
    await using processes = await Processes.open();
    const world = processes.start();
    const id = await world.add({ request: "r", input: "1" });
    await processes.column("update pawl.request set digest = null returning id");
    expect(await world.enqueue({ request: "r", input: "2" })).toEqual([{ kind: "existing", id }]);
  });

  test("of fifty different jobs that two processes enqueue at once with one request id, one is stored and the others are refused", async () => {
    await using processes = await Processes.open();
    const [here, there] = [processes.start(), processes.start()];
    const jobs = Array.from({ length: 50 }, (_, n) => here.newJob({ request: "r", input: String(n) }));
    const answers = (await Promise.all(jobs.map((job, n) => (n % 2 === 0 ? here : there).store.jobs.enqueue([job])))).flat();
    const created = answers.filter((answer) => answer.kind === "created");
    expect(created).toHaveLength(1);
    expect(answers.filter((answer) => answer.kind === "requestReused" && answer.first === created[0]?.id)).toHaveLength(49);
    expect(await processes.column("select count(*)::int from pawl.job")).toEqual([1]);
  });

  test("in a transaction of the caller's a reused request id is refused, alone, among many, and across a commit", async () => {
    await using database = await migratedDatabase();
    await using pawl = await open(database.url);
    const client = new pg.Client(database.config);
    await client.connect();
    const inside = async <T>(work: () => Promise<T>): Promise<T> => {
      await client.query("begin");
      return work().finally(() => client.query("commit"));
    };
    const reused = { code: "request_reused", details: { request: "r" } };
    const first = await inside(async () => {
      const job = await pawl.enqueue("order.confirm", { order: 7 }, { tx: client, request: "r" });
      await expect(pawl.enqueue("order.refund", { order: 7 }, { tx: client, request: "r" })).rejects.toMatchObject(reused);
      return job;
    });
    await inside(async () => {
      expect(await pawl.enqueue("order.confirm", { order: 7 }, { tx: client, request: "r" })).toMatchObject({ id: first.id, enqueued: "existing" });
      const each = () => ({ request: "r" });
      await expect(pawl.enqueueMany("order.confirm", [{ order: 8 }], { tx: client, each })).rejects.toMatchObject(reused);
      await pawl.enqueueMany("order.confirm", [1, 2], { tx: client, request: "many" });
      await expect(pawl.enqueueMany("order.confirm", [1, 3], { tx: client, request: "many" })).rejects.toMatchObject({ code: "request_reused" });
    });
    await client.end();
    expect(await pawl.counts({ task: "order.confirm" })).toMatchObject({ ready: 3 });
    expect(await pawl.counts({ task: "order.refund" })).toMatchObject({ ready: 0 });
  });
});
