import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { pawl } from "../support/cli.js";

const root = fileURLToPath(new URL("../../", import.meta.url));

describe("completion", () => {
  test("is bash that knows commands, subcommands, flags and their values", async () => {
    const { exit, out } = await pawl("completion", "bash");
    expect(exit).toBe(0);
    const complete = (...words: string[]) =>
      execFileSync(
        "bash",
        ["-c", `${out}\nCOMP_WORDS=(${words.map((word) => `"${word}"`).join(" ")}); COMP_CWORD=${words.length - 1}; _pawl; echo "\${COMPREPLY[@]}"`],
        { encoding: "utf8" },
      )
        .trim()
        .split(/\s+/);
    expect(complete("pawl", "")).toEqual(expect.arrayContaining(["jobs", "dead", "doctor", "top", "enqueue", "--help"]));
    expect(complete("pawl", "jo")).toEqual(["jobs"]);
    expect(complete("pawl", "jobs", "l")).toEqual(["list", "logs"]);
    expect(complete("pawl", "jobs", "list", "--st")).toEqual(["--state", "--store"]);
    expect(complete("pawl", "jobs", "list", "--state", "d")).toEqual(["dead"]);
    expect(complete("pawl", "--no", "dead", "redrive", "--can")).toEqual(["--canary"]);
    expect(complete("pawl", "completion", "")).toEqual(expect.arrayContaining(["bash", "zsh", "fish"]));
  });
});

describe("the cost of being asked for help", () => {
  let folder: string;
  // As it is published: JavaScript, without a loader.
  beforeAll(() => {
    mkdirSync(join(root, "node_modules/.cache"), { recursive: true });
    folder = mkdtempSync(join(root, "node_modules/.cache/pawl-cli-"));
    const source = join(root, "packages/server/src");
    for (const file of readdirSync(source, { recursive: true, encoding: "utf8" }).filter(
      (name) => name.endsWith(".ts") && !name.endsWith(".test.ts"),
    )) {
      const { outputText } = ts.transpileModule(readFileSync(join(source, file), "utf8"), {
        compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true },
      });
      const to = join(folder, file.replace(/\.ts$/, ".js"));
      mkdirSync(dirname(to), { recursive: true });
      writeFileSync(to, outputText);
    }
    writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** s of processor time, the least of several: what others do on the machine only adds to it. */
  function cost(...args: readonly string[]): number {
    const script = 'TIMEFORMAT="%U %S"; { time "$@" > /dev/null 2>&1; } 2>&1';
    const once = () =>
      execFileSync("bash", ["-c", script, "bash", process.execPath, ...args], { encoding: "utf8" })
        .trim()
        .split(" ")
        .map(Number);
    return Math.min(...Array.from({ length: 7 }, () => once().reduce((sum, part) => sum + part, 0)));
  }

  test("is at most three times that of a plain Node", { timeout: 120_000 }, () => {
    const plain = cost("-e", "0");
    const help = cost(join(folder, "cli/main.js"), "--help");
    expect(help / plain, `${help} s of processor time beside ${plain} s`).toBeLessThanOrEqual(3);
  });
});
