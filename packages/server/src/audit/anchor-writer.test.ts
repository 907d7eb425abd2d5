import { createPublicKey, generateKeyPairSync } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { serviceOf } from "pawl/service";
import { openTest, type TestPawl } from "pawl/testing";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readAnchors } from "./anchor.js";
import { AnchorWriter, anchorKey } from "./anchor-writer.js";

const PEM = generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString();
const PUBLIC = createPublicKey(PEM);

let world: TestPawl;
let folder: string;
let file: string;
beforeEach(async () => {
  world = await openTest({ work: false, maintenance: false });
  folder = mkdtempSync(join(tmpdir(), "pawl-anchors-"));
  file = join(folder, "anchors.jsonl");
});
afterEach(async () => {
  await world.close();
  rmSync(folder, { recursive: true });
});

const writer = () => new AnchorWriter(serviceOf(world.pawl).audit, { file, key: PEM, onError: () => {} });
const record = (tenant?: string) => serviceOf(world.pawl).audit.record({ tenant, actor: "key:a", action: "jobs.control", outcome: "allowed" });
const read = () => readAnchors(readFileSync(file, "utf8"), PUBLIC);
const lines = () =>
  readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "");

describe("anchors of the audit log", () => {
  test("tell where every chain was, and only of those that moved", async () => {
    await record("acme");
    await record();
    const anchors = writer();
    await anchors.start();
    await record("acme");
    await anchors.stop();
    expect(read()).toMatchObject({ lines: 2 });
    expect(read().anchoredHeads.map(({ tenant, seq }) => [tenant, seq])).toEqual([
      ["acme", 1],
      [undefined, 1],
      ["acme", 2],
    ]);
    expect((await serviceOf(world.pawl).audit.verify({ anchors: read().anchoredHeads })).ok).toBe(true);
  });

  test("go on where another process left them, also after a line that was cut short", async () => {
    await record("acme");
    await writer().write();
    writeFileSync(file, `${readFileSync(file, "utf8")}{"at":"2030-`);
    await record("acme");
    await writer().write();
    expect(read()).toMatchObject({ lines: 2 });
    expect(read().brokenAt).toBeUndefined();
    expect(read().anchoredHeads.map(({ seq }) => seq)).toEqual([1, 2]);
  });

  test("written at once come one after the other", async () => {
    const anchors = writer();
    await Promise.all([1, 2, 3].map(() => anchors.write()));
    expect(read()).toMatchObject({ lines: 3 });
    expect(read().brokenAt).toBeUndefined();
  });

  test("that were edited, left out or signed by another are found, and nothing from there on is believed", async () => {
    const anchors = writer();
    for (let n = 0; n < 4; n++) {
      await record("acme");
      await anchors.write();
    }
    const [first, second, third, fourth] = lines() as [string, string, string, string];
    const broken = (...parts: readonly string[]) => readAnchors(parts.join("\n"), PUBLIC);
    expect(broken(first, second.replace('"acme",2', '"acme",1'), third, fourth)).toMatchObject({ brokenAt: 2, anchoredHeads: [{ seq: 1 }] });
    expect(broken(first, third, fourth)).toMatchObject({ brokenAt: 2 });
    expect(broken(second, third, fourth)).toMatchObject({ brokenAt: 1, anchoredHeads: [] });
    expect(broken(first, "garbage", third, fourth)).toMatchObject({ brokenAt: 3 });
    const stranger = createPublicKey(generateKeyPairSync("ed25519").publicKey.export({ type: "spki", format: "pem" }));
    expect(readAnchors(first, stranger)).toMatchObject({ brokenAt: 1, anchoredHeads: [] });
  });

  test("are not written into a file of another key, nor with a key that signs otherwise", async () => {
    await writer().write();
    const other = generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString();
    await expect(new AnchorWriter(serviceOf(world.pawl).audit, { file, key: other, onError: () => {} }).start()).rejects.toThrow(
      /not a file of anchors by this key/,
    );
    const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ type: "pkcs8", format: "pem" }).toString();
    expect(() => anchorKey(rsa)).toThrow(/not ed25519/);
    expect(() => anchorKey("no key at all")).toThrow();
  });
});
