import { execFile } from "node:child_process";
import { copyFileSync, lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { blocksOf } from "../readme/blocks.js";
import { ShellProcess } from "../support/processes/child-process.js";
import { temporaryFolder } from "../support/temporary-folder.js";
import { makeApplication } from "./application.js";
import { installNodes, NODES, type NodeVersion, withNode } from "./nodes.js";
import { packAll } from "./pack.js";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../../", import.meta.url));
const fixture = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const DOORS = ["index", "worker", "adapters", "testing", "service", "store"];
/** bytes, as npm counts the size of an unpacked package */
const SMALL = 3_000_000;
const snippets = blocksOf(readFileSync(join(root, "README.md"), "utf8")).flatMap(({ language, text }) => (language === "ts" ? [text] : []));
const usesPg = (text: string) => text.includes('from "pg"');
/** The snippets of the README for readers without `pg`, by file. */
const shown = new Map(snippets.filter((text) => !usesPg(text)).map((text, index) => [`snippet-${index}.mts`, text] as const));
/** Its first snippet, and what that prints. */
const EXAMPLE = "snippet-0.mts";
const PRINTED = "{ reminded: '42' }\n{ reminded: '43' }\n";

/** The packages as they are published, and applications that have installed them. */
describe("the packed packages", () => {
  const home = temporaryFolder();
  let packed: Awaited<ReturnType<typeof packAll>>;

  beforeAll(async () => {
    packed = await packAll(join(home.path, "packed"));
  }, 300_000);
  afterAll(() => home[Symbol.dispose]());

  /** Puts a file into an application. */
  function write(application: string, file: string, text: string): void {
    mkdirSync(dirname(join(application, file)), { recursive: true });
    writeFileSync(join(application, file), text);
  }
  /** Compiles files with the compiler of this repository, and answers with its complaints. */
  async function compile(application: string, options: object, files: readonly string[]): Promise<string> {
    const common = { target: "es2022", lib: ["es2024", "esnext.disposable"], strict: true, skipLibCheck: false, types: ["node"] };
    write(application, "tsconfig.json", JSON.stringify({ compilerOptions: { ...common, ...options }, files }));
    const ran = await run(process.execPath, [join(root, "node_modules/typescript/bin/tsc")], { cwd: application }).catch(
      (error: { stdout: string }) => error,
    );
    return ran.stdout;
  }
  const node = (version: NodeVersion, cwd: string, ...args: readonly string[]) => run("node", args, { cwd, env: withNode(version) });

  describe("hold", () => {
    test("what is run, its migrations and its types, and neither sources nor tests", () => {
      const of = (name: keyof typeof packed, pattern: RegExp) => packed[name].files.filter((file) => pattern.test(file));
      for (const name of ["pawl", "pawl-server"] as const) {
        expect(of(name, /^(?!package\.json$|README\.md$|dist\/.*\.(js|sql|d\.ts)$)|\.test\.|conformance/), name).toEqual([]);
        const { exports, bin = {} } = packed[name].manifest;
        const named = Object.values(exports).flatMap((entry) => (typeof entry === "string" ? [entry] : Object.values(entry)));
        expect(packed[name].files, name).toEqual(expect.arrayContaining([...named, ...Object.values(bin)].map((file) => file.replace("./", ""))));
      }
      expect(packed["pawl-embedded"].files).toEqual(["README.md", "package.json"]);
      expect(of("pawl", /^dist\/[^/]+\.d\.ts$/)).toEqual(expect.arrayContaining(DOORS.map((door) => `dist/${door}.d.ts`)));
      const migrations = readdirSync(join(root, "packages/pawl/src"), { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".sql"));
      expect(migrations.length).toBeGreaterThan(0);
      expect(of("pawl", /\.sql$/).toSorted()).toEqual(migrations.map((file) => `dist/${file}`).toSorted());
    });

    test("versions that fit each other", () => {
      const { pawl, "pawl-embedded": embedded, "pawl-server": server } = packed;
      const { version } = pawl.manifest;
      expect([embedded.manifest.version, server.manifest.version]).toEqual([version, version]);
      expect(pawl.manifest.peerDependencies).toEqual({ "pawl-embedded": `^${version}`, pg: embedded.manifest.dependencies?.pg });
      expect(server.manifest.dependencies).toMatchObject({ pawl: version, "pawl-embedded": version, pg: embedded.manifest.dependencies?.pg });
    });
  });

  describe("pawl alone", () => {
    let alone: string;

    beforeAll(async () => {
      alone = join(home.path, "alone");
      await makeApplication(alone, [packed.pawl]);
    });

    test("has at most 3 MB with its dependencies, and also with pg", async () => {
      expect(packagesIn(alone)).toEqual(["@standard-schema/spec", "croner", "pawl"]);
      const small = sizeOf(join(alone, "node_modules"));
      const withPg = join(home.path, "with-pg");
      await makeApplication(withPg, [packed.pawl], ["pg"]);
      const larger = sizeOf(join(withPg, "node_modules"));
      expect(small).toBeLessThanOrEqual(SMALL);
      expect(larger).toBeLessThanOrEqual(SMALL);
      expect(larger).toBeGreaterThan(small);
    });

    test.each([
      ["./data", "embedded_missing", "npm install pawl-embedded"],
      ["postgres://localhost/app", "driver_missing", "npm install pg"],
    ])("cannot open %s, and the error names the command", async (url, code, command) => {
      const script = `import { open } from "pawl"; await open(${JSON.stringify(url)}).catch(({ code, message }) => console.log(code, message));`;
      const { stdout } = await run(process.execPath, ["--input-type=module", "-e", script], { cwd: alone });
      expect(stdout).toContain(`${code} `);
      expect(stdout).toContain(`Run ${command}.`);
      expect(readdirSync(alone)).not.toContain("data");
    });
  });

  describe("in an application", () => {
    let application: string;
    let compiled: string;

    beforeAll(async () => {
      await installNodes();
      application = join(home.path, "application");
      await makeApplication(application, [packed.pawl, packed["pawl-embedded"]], ["zod", "@types/node"]);
      // Every door, from a module of each kind.
      const doors = DOORS.map((door, index) => {
        const name = door === "index" ? "pawl" : `pawl/${door}`;
        return `import * as door${index} from "${name}";\nexport type Door${index} = typeof door${index};\n`;
      });
      for (const file of ["doors.mts", "doors.cts"]) write(application, file, doors.join(""));
      for (const [file, text] of shown) write(application, file, text);
      for (const file of ["engine-app.mjs", "require-app.cjs"]) copyFileSync(fixture(file), join(application, file));
      const nodenext = { module: "nodenext", moduleResolution: "nodenext", outDir: "built", rootDir: "." };
      compiled = await compile(application, nodenext, ["doors.mts", "doors.cts", ...shown.keys()]);
    }, 300_000);

    test("what the README shows and every door compile with the resolution nodenext, the types of libraries checked too", () => {
      expect(packagesIn(application)).not.toContain("@types/pg");
      expect([...shown.keys()]).toContain(EXAMPLE);
      expect(compiled).toBe("");
    });

    test("they compile with the resolution bundler", async () => {
      const bundler = { module: "preserve", moduleResolution: "bundler", noEmit: true };
      expect(await compile(application, bundler, ["doors.mts", ...shown.keys()])).toBe("");
    });

    test("the README's transaction of pg compiles with the types of pg", async () => {
      const reader = join(home.path, "reader");
      await makeApplication(reader, [packed.pawl], ["pg", "@types/pg", "@types/node"]);
      write(reader, "transaction.mts", snippets.filter(usesPg).join("\nexport {};\n"));
      expect(await compile(reader, { module: "nodenext", noEmit: true }, ["transaction.mts"])).toBe("");
    });

    describe.each(NODES)("on $name", (version) => {
      const skipped = version.folder === undefined;

      test.skipIf(skipped)("the README's example runs as an ES module", async () => {
        const { stdout } = await node(version, application, `built/${EXAMPLE.replace(".mts", ".mjs")}`);
        expect(stdout).toBe(PRINTED);
      });

      test.skipIf(skipped)("every door opens by require, and jobs run", async () => {
        const { stdout } = await node(version, application, "require-app.cjs");
        expect(JSON.parse(stdout)).toEqual({ node: version.major, output: "hello you", doors: DOORS.length, drivers: [] });
      });
    });

    test.each(["native", "pglite"])("jobs run with the %s engine, the renewal thread included", async (engine) => {
      using data = temporaryFolder();
      const { stdout } = await run(process.execPath, ["engine-app.mjs", data.path, engine], { cwd: application });
      expect(stdout.trim().split("\n")).toEqual([
        "output: attempt 1",
        "history: succeeded",
        `engine: ${engine === "native" ? "embedded" : "pglite"}`,
        "waiting: 0",
        "doors: function, memory, 0",
        expect.stringMatching(/^error: true no task is registered as "?blok"?\. Pass it in open/),
      ]);
    });

    test("jobs run where each package sees only what it names, as pnpm lays them out", async () => {
      const strict = join(home.path, "strict");
      await makeApplication(strict, [packed.pawl, packed["pawl-embedded"]]);
      layOutStrictly(strict);
      copyFileSync(fixture("engine-app.mjs"), join(strict, "engine-app.mjs"));
      using data = temporaryFolder();
      const { stdout } = await run(process.execPath, ["engine-app.mjs", data.path, "native"], { cwd: strict });
      expect(stdout).toContain("output: attempt 1\nhistory: succeeded\nengine: embedded\n");
    });
  });

  describe("pawl-server alone", () => {
    let application: string;

    beforeAll(async () => {
      await installNodes();
      application = join(home.path, "service");
      await makeApplication(application, [packed["pawl-server"], packed.pawl, packed["pawl-embedded"]]);
      mkdirSync(join(application, "tasks"));
      copyFileSync(fixture("greet.mjs"), join(application, "tasks/greet.mjs"));
    }, 300_000);

    describe.each(NODES)("on $name", (version) => {
      test.skipIf(version.folder === undefined)("npx pawl says its version, and npx pawl dev runs the tasks of a folder", async () => {
        const { stdout } = await run("npx", ["--no-install", "pawl", "--version"], { cwd: application, env: withNode(version) });
        expect(stdout.trim()).toBe(packed["pawl-server"].manifest.version);

        const env = { ...withNode(version), PAWL_LISTEN: "127.0.0.1:0", PAWL_STORE: `./data-${version.major}` };
        await using service = new ShellProcess("npx --no-install pawl dev", application, env);
        const address = (await service.line(/^listening +/)).replace(/^listening +/, "");
        await service.line(/^ready/);
        const job = JSON.stringify({ task: "greet", input: { who: "you" } });
        const answer = await fetch(`${address}/v1/jobs`, { method: "POST", headers: { "content-type": "application/json" }, body: job });
        expect(await answer.json()).toMatchObject({ task: "greet", enqueued: "created" });
        await service.line(/greet +succeeded/);
        service.interrupt();
        await service.exit(); // npx's own, which is the signal
        expect(service.lines.at(-1)).toMatch(/^stopped/);
      });
    });
  });
});

/** The packages of an application, by name. */
function packagesIn(application: string): readonly string[] {
  return readdirSync(join(application, "node_modules"), { recursive: true, encoding: "utf8" })
    .filter((path) => /^(@[^/]+\/)?[^/]+\/package\.json$/.test(path))
    .map((path) => dirname(path))
    .toSorted();
}

function sizeOf(folder: string): number {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files.reduce((sum, { parentPath, name }) => sum + lstatSync(join(parentPath, name)).size, 0);
}

/** Each package in a folder of its own, where it finds what it names and nothing else. */
function layOutStrictly(application: string): void {
  const modules = join(application, "node_modules");
  const names = packagesIn(application);
  const homeOf = (name: string) => join(modules, ".pnpm", name.replace("/", "+"), "node_modules", name);
  for (const name of names) {
    mkdirSync(dirname(homeOf(name)), { recursive: true });
    renameSync(join(modules, name), homeOf(name));
  }
  const link = (from: string, name: string) => {
    const path = join(from, name);
    mkdirSync(dirname(path), { recursive: true });
    symlinkSync(relative(dirname(path), homeOf(name)), path);
  };
  for (const name of names) {
    const manifest = JSON.parse(readFileSync(join(homeOf(name), "package.json"), "utf8")) as Record<string, Record<string, string> | undefined>;
    const { dependencies, optionalDependencies, peerDependencies } = manifest;
    // An optional peer is linked where the application itself has it, which has no pg.
    const wanted = Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies }).filter((one) => names.includes(one));
    for (const other of wanted.filter((one) => !(name === "pawl" && one === "pg"))) {
      link(name.startsWith("@") ? dirname(dirname(homeOf(name))) : dirname(homeOf(name)), other);
    }
  }
  for (const name of ["pawl", "pawl-embedded"]) link(modules, name);
}
