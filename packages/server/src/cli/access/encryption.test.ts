import { serviceOf } from "pawl/service";
import { expect, test } from "vitest";
import { CliFixture } from "../../../../../test/support/fixtures/cli-fixture.js";

const KEYS = [Buffer.alloc(32, 1).toString("base64"), Buffer.alloc(32, 2).toString("base64")];

test("pawl tenants purge asks first, says what is gone, and is audited", async () => {
  await using fixture = await CliFixture.start();
  await fixture.pawl.forTenant("acme").enqueue("mail", "hello");
  expect(await fixture.run("tenants", "purge", "acme")).toMatchObject({ exit: 4 });
  expect((await fixture.pawl.jobs.list({ tenant: "acme" })).items).toHaveLength(1);
  const lines = (await fixture.run("tenants", "export", "acme")).out.trimEnd().split("\n");
  expect(lines.map((line) => JSON.parse(line).kind)).toEqual(["tenant", "job", "end"]);
  expect((await fixture.run("tenants", "purge", "acme", "--yes", "--json")).json).toMatchObject({ tenant: "acme", jobs: 1 });
  expect((await fixture.pawl.jobs.list({ tenant: "acme" })).items).toEqual([]);
  expect((await serviceOf(fixture.pawl).audit.list()).items.map(({ action }) => action)).toEqual(["tenants.purge", "tenants.export"]);
});

test("pawl encryption shows, rewraps and rotates keys, and says which setting is missing", async () => {
  await using fixture = await CliFixture.start({ encryption: { masterKeys: KEYS } });
  await fixture.pawl.enqueue("mail", "hello");
  expect((await fixture.run("encryption", "status", "--json")).json).toMatchObject({
    masterKeys: [
      { count: 1, here: true },
      { count: 0, here: true },
    ],
  });
  expect((await fixture.run("encryption", "rotate", "default")).out).toBe("default: version 2\n");
  expect((await fixture.run("encryption", "rewrap")).out).toBe("0 data keys rewrapped\n");
  await using bare = await CliFixture.start();
  expect((await bare.run("encryption", "rewrap")).err).toContain("encryption.masterKeys");
  expect((await bare.run("encryption", "status")).out).toBe("nothing in this store is encrypted\n");
});
