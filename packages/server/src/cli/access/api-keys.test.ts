import { parseApiKey, serviceOf } from "pawl/service";
import { describe, expect, test } from "vitest";
import { CliFixture } from "../../../../../test/support/fixtures/cli-fixture.js";
import { EXIT } from "../exit.js";

const options = { apiKeys: { pepper: "a pepper of sixteen bytes or more" } };

describe("pawl api-keys", () => {
  test("makes a key and shows it once, alone on its line, for a script to keep", async () => {
    await using fixture = await CliFixture.start(options);
    const { out, err, exit } = await fixture.run(
      "api-keys",
      "create",
      "ci",
      "--role",
      "producer",
      "--role",
      "viewer",
      "--task",
      "mail.*",
      "--tenant",
      "acme",
      "--expires-in",
      "90d",
    );
    expect(exit).toBe(EXIT.done);
    const key = parseApiKey(out.trim());
    expect(err).toContain(`key ${key?.id} (ci) is shown this once`);
    expect(await serviceOf(fixture.pawl).apiKeys.verify(out.trim())).toMatchObject({
      ok: true,
      credential: {
        tenant: "acme",
        grants: [
          { role: "producer", tasks: ["mail.*"] },
          { role: "viewer", tasks: ["mail.*"] },
        ],
      },
    });
    const { json } = await fixture.run("api-keys", "list", "--json");
    expect(json).toMatchObject({ items: [{ id: key?.id, name: "ci" }] });
    expect(JSON.stringify(json)).not.toContain(key?.secret);
    expect((await fixture.run("api-keys", "list")).out).toContain(`${key?.id}\tci\tacme\tproducer tasks mail.*; viewer tasks mail.*`);
  });

  test("says so where there are none, but not to a script", async () => {
    await using fixture = await CliFixture.start(options);
    expect(await fixture.run("api-keys", "list")).toMatchObject({ out: "", err: "no keys\n" });
    expect(await fixture.run("audit", "list")).toMatchObject({ out: "", err: "no entries\n" });
    expect(await fixture.run("api-keys", "list", "--json")).toMatchObject({ json: { items: [] }, err: "" });
  });

  test("rotates and revokes, and tells the audit log who did", async () => {
    await using fixture = await CliFixture.start(options);
    const first = (await fixture.run("api-keys", "create", "ci", "--role", "viewer")).out.trim();
    const id = parseApiKey(first)?.id as string;
    const second = (await fixture.run("api-keys", "rotate", id, "--keep-old-for", "1h")).out.trim();
    expect([(await serviceOf(fixture.pawl).apiKeys.verify(first)).ok, (await serviceOf(fixture.pawl).apiKeys.verify(second)).ok]).toEqual([
      true,
      true,
    ]);
    expect((await fixture.run("api-keys", "revoke", id)).out).toContain(`revoked ${id} (ci)`);
    const { items: entries } = await serviceOf(fixture.pawl).audit.list();
    expect(entries.map(({ action, outcome, subject }) => [action, outcome, subject])).toEqual([
      ["apiKeys.revoke", "allowed", `key:${id}`],
      ["apiKeys.rotate", "allowed", `key:${id}`],
      ["apiKeys.create", "allowed", "name:ci"],
    ]);
    expect(entries.every(({ actor }) => actor.startsWith("cli:"))).toBe(true);
    expect((await fixture.run("audit", "list")).out.split("\n")[0]).toContain("apiKeys.revoke");
    expect((await fixture.run("audit", "list", "--action", "apiKeys.rotate", "--json")).json).toMatchObject({ items: [{ seq: 2 }] });
    const verified = await fixture.run("audit", "verify");
    expect(verified.out).toBe("whole: 3 entries in 1 logs\n");
    expect(verified.err).toContain("without anchors, an end that was cut off together with its head is not found");
  });

  test("says what is wrong, and makes nothing", async () => {
    await using fixture = await CliFixture.start(options);
    expect((await fixture.run("api-keys", "create", "ci")).exit).toBe(EXIT.usage);
    expect((await fixture.run("api-keys", "create", "ci", "--role", "viewr")).err).toContain("did you mean viewer");
    const nobody = await fixture.run("api-keys", "rotate", "nobody");
    expect([nobody.exit, nobody.err]).toEqual([EXIT.unknown, expect.stringContaining("there is no API key")]);
    for (const what of ["api-keys", "audit"]) {
      const { exit, err } = await fixture.run(what, "list", "--limit", "many");
      expect([exit, err]).toEqual([EXIT.usage, "pawl: --limit: many is not a whole number from 1 to 1,000\n"]);
    }
    expect((await fixture.run("audit", "list", "--cursor", "-1")).exit).toBe(EXIT.usage);
    expect((await fixture.run("audit", "verify", "--anchors", "x")).exit).toBe(EXIT.usage);
    expect((await fixture.run("audit", "verify", "--anchors", "/nowhere", "--key", "/nowhere")).err).toContain("cannot be read");
    expect(await serviceOf(fixture.pawl).apiKeys.list()).toEqual({ items: [] });
  });
});

test("pawl api-keys without a pepper says which setting is missing", async () => {
  await using fixture = await CliFixture.start();
  const { exit, err } = await fixture.run("api-keys", "create", "ci", "--role", "viewer");
  expect([exit, err]).toEqual([
    EXIT.failed,
    "pawl: API keys need a pepper, and there is none\n      set PAWL_API_KEYS_PEPPER, or apiKeys.pepper in the configuration\n",
  ]);
});

describe("pawl migrate --print-roles", () => {
  test("prints a script for psql, for the schema that is named", async () => {
    await using fixture = await CliFixture.start(options);
    const { out, exit } = await fixture.run("migrate", "--print-roles", "--schema", "jobs");
    expect(exit).toBe(EXIT.done);
    expect(out).toContain("create role jobs_engine nologin");
    expect(out).toContain("revoke update, delete, truncate on jobs.audit from jobs_engine;\n");
    expect(out).not.toMatch(/\bpawl\.(?!tenant)/);
  });
});
