import { expect, test } from "vitest";
import { Rig } from "../../../../test/support/rig.js";

const KEYS = [Buffer.alloc(32, 1).toString("base64"), Buffer.alloc(32, 2).toString("base64")];

test("pawl tenants purge asks first, says what is gone, and is audited", async () => {
  await using rig = await Rig.start();
  await rig.pawl.as({ tenant: "acme" }).enqueue("mail", "hello");
  expect(await rig.do("tenants", "purge", "acme")).toMatchObject({ exit: 4 });
  expect((await rig.pawl.jobs.list({ tenant: "acme" })).jobs).toHaveLength(1);
  const lines = (await rig.do("tenants", "export", "acme")).out.trimEnd().split("\n");
  expect(lines.map((line) => JSON.parse(line).kind)).toEqual(["tenant", "job", "end"]);
  expect((await rig.do("tenants", "purge", "acme", "--yes", "--json")).json).toMatchObject({ tenant: "acme", jobs: 1 });
  expect((await rig.pawl.jobs.list({ tenant: "acme" })).jobs).toEqual([]);
  expect((await rig.pawl.audit.list()).entries.map(({ action }) => action)).toEqual(["tenants.purge", "tenants.export"]);
});

test("pawl encryption shows, rewraps and rotates keys, and says which setting is missing", async () => {
  await using rig = await Rig.start({ encryption: { keys: KEYS } });
  await rig.pawl.enqueue("mail", "hello");
  expect((await rig.do("encryption", "status", "--json")).json).toMatchObject({
    masters: [
      { count: 1, here: true },
      { count: 0, here: true },
    ],
  });
  expect((await rig.do("encryption", "rotate", "default")).out).toBe("default: version 2\n");
  expect((await rig.do("encryption", "rewrap")).out).toBe("0 data keys rewrapped\n");
  await using bare = await Rig.start();
  expect((await bare.do("encryption", "rewrap")).err).toContain("encryption.keys");
  expect((await bare.do("encryption", "status")).out).toBe("nothing in this store is sealed\n");
});
