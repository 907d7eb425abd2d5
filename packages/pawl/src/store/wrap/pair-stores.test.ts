import { expect, onTestFinished, test } from "vitest";
import { task } from "../../core/jobs/task.js";
import { startPawl } from "../../pawl.js";
import { serviceOf } from "../../service-of.js";
import { memoryServiceStore, memoryStore } from "../memory/index.js";
import type { EngineStore, ServiceStore } from "../port/index.js";
import { isWhole, pairStores } from "./pair-stores.js";

const SERVICE_NOUNS = ["apiKeys", "audit", "replies", "dataKeys", "purges", "events"] satisfies (keyof ServiceStore)[];

/** A store that implements the engine's port alone. */
function engineAlone(): EngineStore {
  const nouns = Object.entries(memoryStore()).filter(([noun]) => !(SERVICE_NOUNS as readonly string[]).includes(noun));
  return Object.fromEntries(nouns) as unknown as EngineStore;
}

test("a pawl on an engine alone runs jobs, and refuses what needs a service store by its code", async () => {
  const engine = engineAlone();
  expect(isWhole(engine)).toBe(false);
  const add = task("add", async (n: number) => n + 1);
  const pawl = await startPawl(engine, { tasks: [add] });
  onTestFinished(() => pawl.close());
  await pawl.work();
  expect(await (await pawl.enqueue(add, 41)).result()).toBe(42);
  const { audit, encryption } = serviceOf(pawl);
  const error = { code: "service_store_missing", details: { what: "audit.list", engine: "memory" } };
  await expect(audit.list()).rejects.toMatchObject(error);
  await expect(encryption.status()).rejects.toMatchObject({ code: "service_store_missing" });
  await expect(pawl.tenants.purge("acme")).rejects.toMatchObject({ code: "service_store_missing" });
});

test("an engine is paired with the service part of another store", async () => {
  const service = memoryServiceStore({ now: () => 1_000 });
  const store = pairStores(engineAlone(), service);
  expect(isWhole(store)).toBe(true);
  await store.purges.begin("5f2b3a52-6f5e-4b39-8f3f-000000000001", "acme");
  expect(await service.purges.list()).toMatchObject([{ tenant: "acme", askedAt: 1_000 }]);
  await store.close();
  await expect(service.purges.list()).rejects.toThrow();
  await expect(store.jobs.list("everyone", {}, { limit: 1 })).rejects.toThrow();
});
