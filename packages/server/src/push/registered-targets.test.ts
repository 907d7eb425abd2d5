import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { open, type Pawl } from "pawl";
import { serviceOf } from "pawl/service";
import { afterEach, describe, expect, test } from "vitest";
import type { TargetRules } from "./check-target.js";
import { deliverer, targetChecker } from "./registered-targets.js";
import { parseNetworks } from "./safe-address.js";
import { secretBytes, verify } from "./signature.js";

const MASTER = Buffer.alloc(32, 7).toString("base64");
const HOME: TargetRules = { plain: true, allowed: parseNetworks(["127.0.0.0/8"]) };
const closing: (() => Promise<unknown> | unknown)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

interface Got {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly response: ServerResponse;
}

/** A target that keeps what it got; `next` waits for it. Unless told otherwise it answers at once. */
async function receiving(answer: (got: Got) => void = ({ response }) => response.end()) {
  const got: Got[] = [];
  let onDelivery = () => {};
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      const one = { headers: request.headers, body, response };
      got.push(one);
      onDelivery();
      answer(one);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    got,
    async until(count: number): Promise<readonly Got[]> {
      while (got.length < count)
        await new Promise<void>((resolve) => {
          onDelivery = resolve;
        });
      return got;
    },
  };
}

async function pushing(rules: TargetRules = HOME): Promise<Pawl> {
  const pawl = await open("memory:", { allowUnknownTasks: true, encryption: { masterKeys: [MASTER] }, checkTarget: targetChecker(rules) });
  closing.push(() => pawl.close());
  await pawl.work();
  await serviceOf(pawl).push(deliverer(rules));
  return pawl;
}

const isSignedWith = (secret: string, { headers, body }: Got): boolean => {
  const signedHeaders = {
    id: String(headers["webhook-id"]),
    timestamp: String(headers["webhook-timestamp"]),
    signature: String(headers["webhook-signature"]),
  };
  return verify(secretBytes(secret), signedHeaders, body, Number(signedHeaders.timestamp));
};

describe("a target that was registered", () => {
  test("gets the jobs of its task from then on, signed with the secret that was shown, and answers with their output", async () => {
    const pawl = await pushing();
    const job = await pawl.enqueue("bill", { order: 7 });
    const target = await receiving(({ response }) => response.setHeader("content-type", "application/json").end('{"paid":true}'));
    const { secret } = await pawl.targets.put("bill", { url: target.url });
    expect(await job.result("60s")).toEqual({ paid: true });
    const [first] = await target.until(1);
    expect(JSON.parse((first as Got).body)).toMatchObject({ type: "bill", data: { order: 7 }, job: job.id, attempt: 1, tenant: "default" });
    expect(isSignedWith(secret as string, first as Got)).toBe(true);
  });

  test("gets no job of another tenant, whose own target for the same task gets them", async () => {
    const pawl = await pushing();
    const [acme, umbrella] = [await receiving(), await receiving()];
    await pawl.targets.put("bill", { url: acme.url, tenant: "acme" });
    await pawl.targets.put("mail", { url: umbrella.url, tenant: "umbrella" });
    const waits = await pawl.enqueue("bill", 0, { tenant: "umbrella" });
    const jobs = await Promise.all([1, 2, 3].map((n) => pawl.enqueue("bill", n, { tenant: "acme" })));
    await Promise.all(jobs.map((job) => job.result("60s")));
    expect(acme.got.map(({ body }) => JSON.parse(body).tenant)).toEqual(["acme", "acme", "acme"]);
    expect((await waits.get()).state).toBe("ready");
    // A worker serves the task, and one serves the tenant; none serves both.
    expect((await waits.explain()).reasons[0]).toMatchObject({ kind: "unserved", lacks: [{ kind: "task", task: "bill" }] });
    await pawl.targets.put("bill", { url: umbrella.url, tenant: "umbrella" });
    await waits.result("60s");
    expect(umbrella.got.map(({ body }) => JSON.parse(body))).toMatchObject([{ job: waits.id, tenant: "umbrella" }]);
  });

  test("is signed to by both secrets while one takes the place of the other, and by the new one alone after that", async () => {
    const pawl = await pushing();
    const target = await receiving();
    const first = (await pawl.targets.put("bill", { url: target.url })).secret as string;
    const second = (await pawl.targets.rotate("bill", { keepOldFor: "1h" })).secret as string;
    /** Heard of by a poll: until then the ones before are used. */
    const signedBy = (...signers: readonly string[]) =>
      expect
        .poll(
          async () => {
            await (await pawl.enqueue("bill")).result("60s");
            return [first, second, third].filter((secret) => secret !== "" && isSignedWith(secret, target.got.at(-1) as Got));
          },
          { timeout: 60_000 },
        )
        .toEqual(signers);
    let third = "";
    await signedBy(first, second);
    third = (await pawl.targets.rotate("bill", { keepOldFor: 0 })).secret as string;
    await signedBy(third);
  });

  test("gets no more once it is removed: what is under way ends as it does, and the others wait for a worker", async () => {
    const pawl = await pushing();
    const target = await receiving(() => {});
    await pawl.targets.put("bill", { url: target.url, concurrency: 1 });
    const [running, waiting] = [await pawl.enqueue("bill", 1), await pawl.enqueue("bill", 2)];
    const [delivery] = await target.until(1);
    const stopping = new Promise((resolve) => pawl.on("worker.stopping", resolve));
    await pawl.targets.delete("bill");
    await stopping;
    (delivery as Got).response.end();
    await running.result("60s");
    await expect.poll(async () => (await pawl.workers.list()).items.some(({ tasks }) => tasks.includes("bill")), { timeout: 60_000 }).toBe(false);
    expect((await waiting.get()).state).toBe("ready");
    expect((await waiting.explain()).reasons[0]).toMatchObject({ kind: "unserved" });
    expect(target.got).toHaveLength(1);
  });

  test("has no more deliveries at a time than it takes", async () => {
    const pawl = await pushing();
    const target = await receiving(() => {});
    await pawl.targets.put("bill", { url: target.url, concurrency: 2 });
    const jobs = await pawl.enqueueMany("bill", [1, 2, 3, 4, 5]);
    for (let ended = 0; ended < jobs.length; ended++) {
      const got = await target.until(Math.min(ended + 2, jobs.length));
      expect(got.length).toBe(Math.min(ended + 2, jobs.length));
      (got[ended] as Got).response.end();
      await pawl.jobs.wait(JSON.parse((got[ended] as Got).body).job, "60s");
    }
  });

  test("that does not answer by its deadline has failed, and is tried again with the same id", async () => {
    const pawl = await pushing();
    let requests = 0;
    const target = await receiving(({ response }) => void (++requests > 1 && response.end()));
    await pawl.tasks.put("bill", { retry: [0] });
    await pawl.targets.put("bill", { url: target.url, timeout: 200 });
    const job = await pawl.enqueue("bill");
    await job.result("60s");
    expect(new Set(target.got.map(({ headers }) => headers["webhook-id"]))).toEqual(new Set([job.id]));
    const [failed] = (await job.history()).items;
    expect(failed).toMatchObject({ outcome: "failed", failure: { message: "the target did not answer within 200 ms" } });
  });

  test("that answers 410 gets no more until it is put again (S41)", async () => {
    const pawl = await pushing();
    let status = 410;
    const target = await receiving(({ response }) => response.writeHead(status).end());
    await pawl.targets.put("bill", { url: target.url });
    expect(await pawl.jobs.wait(await pawl.enqueue("bill"), "60s")).toMatchObject({ state: "dead" });
    expect(await pawl.targets.get("bill")).toMatchObject({ goneAt: expect.any(Date) });
    await expect.poll(async () => (await pawl.workers.list()).items.some(({ tasks }) => tasks.includes("bill")), { timeout: 60_000 }).toBe(false);
    const waits = await pawl.enqueue("bill");
    status = 200;
    expect((await pawl.targets.put("bill", { url: target.url })).secret).toBeUndefined();
    await waits.result("60s");
    expect(target.got).toHaveLength(2);
  });

  test("whose name leads to a private address when it is connected to is not (S43), and its job is dead", async () => {
    const canary = await receiving();
    const { port } = new URL(canary.url);
    const pawl = await pushing({ plain: true, resolve: async () => [{ address: "127.0.0.1", family: 4 }] });
    await pawl.targets.put("bill", { url: `http://rebound.example:${port}/` });
    const job = await pawl.enqueue("bill");
    expect(await pawl.jobs.wait(job, "60s")).toMatchObject({
      state: "dead",
      failure: { message: "rebound.example is at no address that jobs may be pushed to" },
    });
    expect(canary.got).toEqual([]);
  });
});

describe("a target is refused", () => {
  test.each(["http://example.com/", "https://127.1/", "https://metadata.internal/", "https://user:pass@example.com/", "https://[::1]/"])(
    "at %s, when it is registered (S42)",
    async (url) => {
      const pawl = await pushing({});
      await expect(pawl.targets.put("bill", { url })).rejects.toMatchObject({ code: "target_forbidden" });
      expect((await pawl.targets.list()).items).toEqual([]);
    },
  );

  test("where its secret could not be encrypted", async () => {
    const pawl = await open("memory:");
    closing.push(() => pawl.close());
    await expect(pawl.targets.put("bill", { url: "https://example.com/" })).rejects.toMatchObject({ code: "target_secret_unencrypted" });
  });

  test.each([
    [{ url: "ftp://example.com" }, "option_invalid"],
    [{ url: "https://example.com", timeout: "1h" }, "option_invalid"],
    [{ url: "https://example.com", concurrency: 0 }, "option_invalid"],
    [{ url: "https://example.com", secret: "mine" }, "option_invalid"],
    [{ url: "https://example.com", tenant: "" }, "name_invalid"],
  ])("with options like %j", async (options, code) => {
    const pawl = await pushing();
    await expect(pawl.targets.put("bill", options as never)).rejects.toMatchObject({ code });
  });

  test("for tasks of Pawl's own, and none is found where there is none", async () => {
    const pawl = await pushing({});
    await expect(pawl.targets.put("pawl.bulk", { url: "https://example.com/" })).rejects.toMatchObject({ code: "task_reserved" });
    for (const act of [pawl.targets.get("x"), pawl.targets.rotate("x"), pawl.targets.delete("x")])
      await expect(act).rejects.toMatchObject({ code: "target_unknown" });
    await expect(pawl.forTenant("acme").targets.list({ tenant: "other" })).rejects.toMatchObject({ code: "option_invalid" });
  });
});
