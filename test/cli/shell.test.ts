import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runPawl } from "../support/run-cli.js";

const root = fileURLToPath(new URL("../../", import.meta.url));

describe("completion", () => {
  test("is bash that knows commands, subcommands, flags and their values", async () => {
    const { exit, out } = await runPawl("completion", "bash");
    expect(exit).toBe(0);
    const complete = (...args: string[]) =>
      execFileSync(
        "bash",
        ["-c", `${out}\nCOMP_WORDS=(${args.map((word) => `"${word}"`).join(" ")}); COMP_CWORD=${args.length - 1}; _pawl; echo "\${COMPREPLY[@]}"`],
        { encoding: "utf8" },
      )
        .trim()
        .split(/\s+/);
    expect(complete("pawl", "")).toEqual(expect.arrayContaining(["jobs", "dead", "doctor", "top", "enqueue", "--help"]));
    expect(complete("pawl", "jo")).toEqual(["jobs"]);
    expect(complete("pawl", "jobs", "l")).toEqual(["list", "logs"]);
    expect(complete("pawl", "jobs", "list", "--st")).toEqual(["--state", "--store"]);
    expect(complete("pawl", "jobs", "list", "--state", "d")).toEqual(["dead"]);
    expect(complete("pawl", "--no", "dead", "redrive", "--can")).toEqual(["--canary", "--canary-timeout"]);
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

  /** The files that a run of it loads, as V8 counts them. */
  function loaded(...args: readonly string[]): readonly string[] {
    const coverage = mkdtempSync(join(folder, "coverage-"));
    execFileSync(process.execPath, args, { env: { ...process.env, NODE_V8_COVERAGE: coverage }, stdio: "ignore" });
    const [file] = readdirSync(coverage) as [string];
    const { result } = JSON.parse(readFileSync(join(coverage, file), "utf8")) as { result: readonly { url: string }[] };
    return result.map(({ url }) => url).filter((url) => url.startsWith("file:"));
  }

  test("is that of the library: no driver, no server and no more files", { timeout: 120_000 }, () => {
    const files = loaded(join(folder, "cli/main.js"), "--help");
    const packages = new Set(files.flatMap((url) => /node_modules\/((?:@[^/]+\/)?[^/.][^/]*)\/(?!.*node_modules)/.exec(url)?.[1] ?? []));
    expect([...packages].sort()).toEqual(["commander", "picocolors"]);
    expect(files.length).toBeLessThan(320);
  });
});
