import { open } from "pawl";
import { describe, expect, test } from "vitest";
import { service } from "./local-and-remote.js";

const STORE = { encryption: { masterKeys: [Buffer.alloc(32, 7).toString("base64")] } };
const URL = "https://billing.example.com/hook";

describe.each(["in this process", "through a service"])("targets, %s", (way) => {
  const opening = async () => (way === "in this process" ? open("memory:", STORE) : open((await service(STORE)).url));

  test("are put, shown, listed, rotated and removed, of the tenant that is meant", async () => {
    await using pawl = await opening();
    const made = await pawl.targets.put("bill", { url: URL, timeout: "5s", concurrency: 2 });
    expect(made).toMatchObject({
      target: { tenant: "default", task: "bill", url: URL, timeout: 5_000, concurrency: 2 },
      secret: expect.stringMatching(/^whsec_/),
    });
    expect(made.target.createdAt).toBeInstanceOf(Date);
    expect(await pawl.targets.put("bill", { url: `${URL}/2` })).not.toHaveProperty("secret");
    const acme = pawl.forTenant("acme");
    await acme.targets.put("bill", { url: URL });
    expect((await acme.targets.list()).items).toMatchObject([{ tenant: "acme" }]);
    expect(await pawl.targets.get({ task: "bill", tenant: "acme" })).toMatchObject({ url: URL });
    const { secret } = await acme.targets.rotate("bill", { keepOldFor: 0 });
    expect(secret).toMatch(/^whsec_/);
    const { items: targets, next } = await pawl.targets.list({}, { limit: 1 });
    expect([targets[0]?.tenant, next]).toEqual(["acme", expect.any(String)]);
    expect((await pawl.targets.list({}, { limit: 1, cursor: next as string })).items).toMatchObject([{ tenant: "default" }]);
    await acme.targets.delete("bill");
    expect((await pawl.targets.list()).items).toMatchObject([{ tenant: "default", url: `${URL}/2` }]);
  });

  test("are refused alike", async () => {
    await using pawl = await opening();
    for (const [act, code] of [
      [() => pawl.targets.put("bill", { url: "nowhere" }), "option_invalid"],
      [() => pawl.targets.put("bill", { url: URL, timeuot: "5s" } as never), "option_invalid"],
      [() => pawl.targets.put("pawl.bulk", { url: URL }), "task_reserved"],
      [() => pawl.targets.get("bill"), "target_unknown"],
      [() => pawl.targets.rotate({ task: "bill", tenant: "acme" }), "target_unknown"],
      [() => pawl.targets.delete("bill"), "target_unknown"],
      [() => pawl.forTenant("acme").targets.get({ task: "bill", tenant: "other" }), "option_invalid"],
    ] as const)
      await expect(act()).rejects.toMatchObject({ code });
  });
});
