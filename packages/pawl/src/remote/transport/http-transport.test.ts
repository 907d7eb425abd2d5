import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import type { Clock } from "../../runtime/time/clock.js";
import { HttpTransport } from "./http-transport.js";

const closing: (() => unknown)[] = [];
afterEach(() => {
  for (const close of closing.splice(0).reverse()) close();
});

/** Every rest is over at once, and time passes by as much. */
function hasty(): Clock {
  let time = 0;
  return {
    monotonic: () => time,
    after(ms, call) {
      time += ms;
      setImmediate(call);
      return () => {};
    },
    soon: (call) => void setImmediate(call),
    random: () => 0.5,
  };
}

/** A transport to a server that answers so, and how often it was asked. */
async function wired(
  answer: (earlier: number) => "lost" | readonly [status: number, body: string],
): Promise<{ readonly transport: HttpTransport; readonly asked: () => number }> {
  let asked = 0;
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      const told = answer(asked++);
      if (told === "lost") response.destroy();
      else response.writeHead(told[0]).end(told[1]);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const transport = new HttpTransport(new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`), {}, hasty());
  closing.push(
    () => server.close(),
    () => transport.close(),
  );
  return { transport, asked: () => asked };
}

const OK = [200, '{"ok":true}'] as const;

describe("a call of the service", () => {
  test.each([
    [502, "<html>Bad Gateway</html>"],
    [503, '{"message":"no healthy upstream"}'],
    [504, "null"],
  ])("is repeated when a proxy answers %i for it, whatever it says", async (status, body) => {
    const { transport, asked } = await wired((earlier) => (earlier < 2 ? [status, body] : OK));
    expect(await transport.post("/v1/jobs")).toEqual({ ok: true });
    expect(asked()).toBe(3);
  });

  test("that is being served is waited for: its answer is the one that counts", async () => {
    const busy = [409, '{"code":"idempotency_in_flight"}'] as const;
    const { transport, asked } = await wired((earlier) => (earlier < 12 ? busy : OK));
    expect(await transport.post("/v1/jobs")).toEqual({ ok: true });
    expect(asked()).toBe(13);
    const never = await wired(() => busy);
    await expect(never.transport.post("/v1/jobs")).rejects.toMatchObject({ code: "idempotency_in_flight" });
    expect(never.asked()).toBeGreaterThan(20);
  });

  test("says in its error whether it may have been carried out all the same", async () => {
    const lost = await wired(() => "lost");
    await expect(lost.transport.post("/v1/jobs")).rejects.toMatchObject({ code: "store_unreachable", details: { uncertain: true } });
    const restarted = await wired((earlier) => (earlier === 0 ? "lost" : [503, '{"code":"service_starting"}']));
    await expect(restarted.transport.post("/v1/jobs")).rejects.toMatchObject({ code: "service_starting", details: { uncertain: true } });
    const starting = await wired(() => [503, '{"code":"service_starting"}']);
    const error = await starting.transport.post("/v1/jobs").catch((refused: unknown) => refused);
    expect(error).toMatchObject({ code: "service_starting", details: {} });
    expect(error).not.toHaveProperty("details.uncertain");
  });

  test("is tried as often as it says", async () => {
    const { transport, asked } = await wired(() => [503, '{"code":"service_stopping"}']);
    const renewal = transport.json({ method: "POST", path: "/v1/leases/renew", repeatable: true, tries: 1 });
    await expect(renewal).rejects.toMatchObject({ code: "service_stopping" });
    expect(asked()).toBe(1);
    await expect(transport.get("/v1/info")).rejects.toMatchObject({ code: "service_stopping" });
    expect(asked()).toBe(5);
  });
});
