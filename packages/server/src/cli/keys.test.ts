import { parseApiKey } from "pawl";
import { describe, expect, test } from "vitest";
import { Rig } from "../../../../test/support/rig.js";
import { EXIT } from "./exit.js";

const options = { keys: { pepper: "a pepper of sixteen bytes or more" } };

describe("pawl keys", () => {
  test("makes a key and shows it once, alone on its line, for a script to keep", async () => {
    await using rig = await Rig.start(options);
    const { out, err, exit } = await rig.do(
      "keys",
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
      "--lasts",
      "90d",
    );
    expect(exit).toBe(EXIT.done);
    const key = parseApiKey(out.trim());
    expect(err).toContain(`key ${key?.id} (ci) is shown this once`);
    expect(await rig.pawl.keys.verify(out.trim())).toMatchObject({
      ok: true,
      credential: {
        tenant: "acme",
        grants: [
          { role: "producer", tasks: ["mail.*"] },
          { role: "viewer", tasks: ["mail.*"] },
        ],
      },
    });
    const { json } = await rig.do("keys", "list", "--json");
    expect(json).toMatchObject({ keys: [{ id: key?.id, name: "ci" }] });
    expect(JSON.stringify(json)).not.toContain(key?.secret);
    expect((await rig.do("keys", "list")).out).toContain(`${key?.id}\tci\tacme\tproducer tasks mail.*; viewer tasks mail.*`);
  });

  test("says so where there are none, but not to a script", async () => {
    await using rig = await Rig.start(options);
    expect(await rig.do("keys", "list")).toMatchObject({ out: "", err: "no keys\n" });
    expect(await rig.do("audit", "list")).toMatchObject({ out: "", err: "no entries\n" });
    expect(await rig.do("keys", "list", "--json")).toMatchObject({ json: { keys: [] }, err: "" });
  });

  test("rotates and revokes, and tells the audit log who did", async () => {
    await using rig = await Rig.start(options);
    const first = (await rig.do("keys", "create", "ci", "--role", "viewer")).out.trim();
    const id = parseApiKey(first)?.id as string;
    const second = (await rig.do("keys", "rotate", id, "--overlap", "1h")).out.trim();
    expect([(await rig.pawl.keys.verify(first)).ok, (await rig.pawl.keys.verify(second)).ok]).toEqual([true, true]);
    expect((await rig.do("keys", "revoke", id)).out).toContain(`revoked ${id} (ci)`);
    const { entries } = await rig.pawl.audit.list();
    expect(entries.map(({ action, outcome, subject }) => [action, outcome, subject])).toEqual([
      ["keys.revoke", "allowed", `key:${id}`],
      ["keys.rotate", "allowed", `key:${id}`],
      ["keys.create", "allowed", "name:ci"],
    ]);
    expect(entries.every(({ actor }) => actor.startsWith("cli:"))).toBe(true);
    expect((await rig.do("audit", "list")).out.split("\n")[0]).toContain("keys.revoke");
    expect((await rig.do("audit", "list", "--action", "keys.rotate", "--json")).json).toMatchObject({ entries: [{ seq: 2 }] });
    const verified = await rig.do("audit", "verify");
    expect(verified.out).toBe("whole: 3 entries in 1 logs\n");
    expect(verified.err).toContain("without anchors, an end that was cut off together with its head is not found");
  });

  test("says what is wrong, and makes nothing", async () => {
    await using rig = await Rig.start(options);
    expect((await rig.do("keys", "create", "ci")).exit).toBe(EXIT.usage);
    expect((await rig.do("keys", "create", "ci", "--role", "viewr")).err).toContain("did you mean viewer");
    const nobody = await rig.do("keys", "rotate", "nobody");
    expect([nobody.exit, nobody.err]).toEqual([EXIT.unknown, expect.stringContaining("there is no API key")]);
    for (const what of ["keys", "audit"]) {
      const { exit, err } = await rig.do(what, "list", "--limit", "many");
      expect([exit, err]).toEqual([EXIT.usage, "pawl: --limit: many is not a whole number from 1 to 1,000\n"]);
    }
    expect((await rig.do("audit", "list", "--before", "-1")).exit).toBe(EXIT.usage);
    expect((await rig.do("audit", "verify", "--anchors", "x")).exit).toBe(EXIT.usage);
    expect((await rig.do("audit", "verify", "--anchors", "/nowhere", "--key", "/nowhere")).err).toContain("cannot be read");
    expect(await rig.pawl.keys.list()).toEqual({ keys: [] });
  });
});

test("pawl keys without a pepper says which setting is missing", async () => {
  await using rig = await Rig.start();
  const { exit, err } = await rig.do("keys", "create", "ci", "--role", "viewer");
  expect([exit, err]).toEqual([
    EXIT.failed,
    "pawl: API keys need a pepper, and there is none\n      set PAWL_KEYS_PEPPER, or keys.pepper in the configuration\n",
  ]);
});

describe("pawl migrate --roles", () => {
  test("prints a script for psql, for the schema that is named", async () => {
    await using rig = await Rig.start(options);
    const { out, exit } = await rig.do("migrate", "--roles", "--schema", "jobs");
    expect(exit).toBe(EXIT.done);
    expect(out).toContain("create role jobs_engine nologin");
    expect(out).toContain("revoke update, delete, truncate on jobs.audit from jobs_engine;\n");
    expect(out).not.toMatch(/\bpawl\.(?!tenant)/);
  });
});
