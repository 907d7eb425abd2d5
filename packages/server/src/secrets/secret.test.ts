import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Reference, referenceOf, splitWords } from "./reference.js";
import { Redactor, Secret } from "./secret.js";

let folder: string;
let time = 0;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "pawl-secret-"));
  time = 0;
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const redactor = new Redactor();
const secretAt = (text: string, env = {}) => new Secret(referenceOf(text, folder) as Reference, env, redactor, () => time);
const node = (code: string) => `command:"${process.execPath}" -e "${code}"`;

describe("a reference", () => {
  test.each([
    ["file:key.pem", { kind: "file", path: "/etc/pawl/key.pem" }],
    ["file:/run/secrets/key", { kind: "file", path: "/run/secrets/key" }],
    ["env:NAME", { kind: "env", name: "NAME" }],
    ["command:vault kv get -field=password secret/pawl", { kind: "command", words: ["vault", "kv", "get", "-field=password", "secret/pawl"] }],
  ])("is %s", (text, reference) => {
    expect(referenceOf(text, "/etc/pawl")).toEqual(reference);
  });

  test.each(["hunter2", "", "file:", "env:", "env:A B", "command:", 'command:a "b', "https://x"])("is not %j", (text) => {
    expect(referenceOf(text, "/")).toBeUndefined();
  });

  test("of a command is words, in which nothing is expanded", () => {
    expect(splitWords(`a 'b c' "d e" f"g h"i $HOME; rm * \`x\``)).toEqual(["a", "b c", "d e", "fg hi", "$HOME;", "rm", "*", "`x`"]);
  });
});

describe("a secret", () => {
  test("is read from a file without the line break at its end, and again when the file has changed", async () => {
    const path = join(folder, "password");
    writeFileSync(path, "first\n");
    const secret = secretAt("file:password");
    expect(await secret.read()).toBe("first");
    writeFileSync(path, "second, and longer\n");
    expect(await secret.read()).toBe("first");
    time += 1_000;
    expect(await secret.read()).toBe("second, and longer");
  });

  test("stays what it was while its place is away", async () => {
    const path = join(folder, "password");
    writeFileSync(path, "first");
    const secret = secretAt("file:password");
    await secret.read();
    rmSync(path);
    time += 5_000;
    expect(await secret.read()).toBe("first");
  });

  test("is read from the environment it was given", async () => {
    expect(await secretAt("env:NAME", { NAME: "from env" }).read()).toBe("from env");
    await expect(secretAt("env:NAME").read()).rejects.toThrow("there is no variable NAME in the environment");
    await expect(secretAt("env:constructor").read()).rejects.toThrow("there is no variable constructor in the environment");
  });

  test("is what a command prints, asked again after a minute, without a shell", async () => {
    const path = join(folder, "answer");
    writeFileSync(path, "one");
    const secret = secretAt(node(`process.stdout.write(require('fs').readFileSync('${path}')+';$(id)')`));
    expect(await secret.read()).toBe("one;$(id)");
    writeFileSync(path, "two");
    time += 59_999;
    expect(await secret.read()).toBe("one;$(id)");
    time += 1;
    expect(await secret.read()).toBe("two;$(id)");
  });

  test("that cannot be had says where it was looked for, and nothing that was printed there", async () => {
    await expect(secretAt("file:nowhere").read()).rejects.toThrow(/ENOENT/);
    const failing = secretAt(node("console.log('hunter2');console.error('hunter2');process.exit(3)"));
    await expect(failing.read()).rejects.toThrow(`command:${process.execPath} failed with 3`);
    await expect(secretAt(node("")).read()).rejects.toThrow("is empty");
    await expect(secretAt("command:there-is-no-such-program").read()).rejects.toThrow("command:there-is-no-such-program failed with ENOENT");
  });

  test("S52: is not told by printing it, and is taken out of what is", async () => {
    const secret = secretAt("env:NAME", { NAME: "hunter2/&" });
    await secret.read();
    expect(`${secret} ${JSON.stringify({ secret })} ${inspect({ secret })}`).not.toContain("hunter2");
    expect(redactor.clean("login of postgres://me:hunter2%2F%26@db failed: hunter2/& is wrong")).toBe(
      "login of postgres://me:[secret]@db failed: [secret] is wrong",
    );
  });
});
