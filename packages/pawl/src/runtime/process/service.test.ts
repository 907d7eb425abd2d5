import { describe, expect, test } from "vitest";
import { barrier } from "../../../../../test/support/fixtures/memory-fixture.js";
import { Lifecycle } from "./service.js";

describe("the contract of services", () => {
  test("a second start is refused, and so is a start after a stop", async () => {
    const service = new Lifecycle("it");
    await service.start(
      () => {},
      () => {},
    );
    await expect(
      service.start(
        () => {},
        () => {},
      ),
    ).rejects.toMatchObject({ code: "already_started" });
    await service.stop(async () => {});
    await expect(
      service.start(
        () => {},
        () => {},
      ),
    ).rejects.toMatchObject({ code: "closed" });
  });

  test("stop before start closes it, and ends nothing", async () => {
    const service = new Lifecycle("it");
    let ended = 0;
    await service.stop(async () => void ended++);
    await expect(
      service.start(
        () => {},
        () => {},
      ),
    ).rejects.toMatchObject({ code: "closed" });
    expect(ended).toBe(0);
  });

  test("stop twice ends it once", async () => {
    const service = new Lifecycle("it");
    let ended = 0;
    await service.start(
      () => {},
      () => {},
    );
    const end = async () => void ended++;
    expect(service.stop(end)).toBe(service.stop(end));
    await service.stop(end);
    expect(ended).toBe(1);
  });

  test("stop while it starts waits for the start", async () => {
    const service = new Lifecycle("it");
    const begun = barrier();
    const order: string[] = [];
    const starting = service.start(
      async () => {
        await begun.opened;
        order.push("begun");
      },
      () => {},
    );
    const stopping = service.stop(async () => void order.push("ended"));
    begun.open();
    await Promise.all([starting, stopping]);
    expect(order).toEqual(["begun", "ended"]);
  });

  test("a start that fails is undone, and the service is closed", async () => {
    const service = new Lifecycle("it");
    let undone = 0;
    let ended = 0;
    const failing = service.start(
      () => Promise.reject(new Error("no")),
      () => void undone++,
    );
    await expect(failing).rejects.toThrow("no");
    await service.stop(async () => void ended++);
    expect([undone, ended, service.state]).toEqual([1, 0, "closed"]);
  });
});
