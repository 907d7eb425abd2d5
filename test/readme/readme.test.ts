import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { NodeProcess } from "../support/processes/child-process.js";
import { freshDatabase, serverFor } from "../support/servers/servers.js";
import { temporaryFolder } from "../support/temporary-folder.js";
import { blocksOf } from "./blocks.js";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../../", import.meta.url));
const read = (file: string) => readFileSync(join(root, file), "utf8");
const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };

const blocks = blocksOf(read("README.md"));
const snippets = blocks.filter(({ language }) => language === "ts");

/** What each snippet prints, in their order. */
const PRINTS = ["{ reminded: '42' }\n{ reminded: '43' }", "", "reminded"];
const INSTALL = "npm install pawl pawl-embedded\nnpm install pawl pg";
const SERVICE = "npm run pawl -- dev examples/tasks";
const ENQUEUE = 'curl -s http://127.0.0.1:7295/v1/jobs -H "content-type: application/json" -d \'{ "task": "greet", "input": { "who": "you" } }\'';
/** The address that stands for the reader's own. */
const EXAMPLE_URL = "postgres://localhost/app";

describe("the README", () => {
  let folder: string;
  const fileOf = (index: number) => join(folder, `snippet-${index}.ts`);

  beforeAll(async () => {
    // In the repository, where "pawl" and "zod" are found as a reader's would be.
    mkdirSync(join(root, ".pawl"), { recursive: true });
    folder = mkdtempSync(join(root, ".pawl/readme-"));
    snippets.forEach(({ text }, index) => {
      writeFileSync(fileOf(index), text);
    });
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test("has no block that nothing checks", () => {
    expect(blocks.filter(({ language }) => language !== "ts" && language !== "bash")).toEqual([]);
    expect(snippets).toHaveLength(PRINTS.length);
  });

  test("shows the API in twenty lines", () => {
    const lines = snippets[0]?.text.split("\n").filter((line) => line.trim() !== "") ?? [];
    expect(lines.length).toBeLessThanOrEqual(20);
  });

  test.for(snippets.map(({ line }, index) => ({ line, index })))(
    "runs what it shows at line $line",
    { timeout: 90_000 },
    async ({ index }, { skip }) => {
      using data = temporaryFolder();
      mkdirSync(data.path);
      const text = snippets[index]?.text ?? "";
      const server = serverFor("embedded18");
      if (text.includes(EXAMPLE_URL) && !server.available) skip(`it needs a Postgres: ${server.reason}`);
      const database = text.includes(EXAMPLE_URL) ? await freshDatabase() : undefined;
      if (database !== undefined) writeFileSync(fileOf(index), text.replace(EXAMPLE_URL, database.url));
      const env = { ...process.env, TSX_TSCONFIG_PATH: join(root, "tsconfig.json"), NO_COLOR: "1" };
      const tsx = join(root, "node_modules/tsx/dist/loader.mjs");
      const { stdout, stderr } = await run(process.execPath, ["--import", tsx, fileOf(index)], { cwd: data.path, env });
      await database?.drop();
      expect({ stdout: stdout.trim(), stderr }).toEqual({ stdout: PRINTS[index], stderr: "" });
      if (text.includes('"./data"')) expect(existsSync(join(data.path, "data"))).toBe(true);
    },
  );

  test("starts the service as it says, which runs the job it says", { timeout: 120_000 }, async () => {
    using data = temporaryFolder();
    await using service = new NodeProcess("packages/server/src/cli/main.ts", SERVICE.replace("npm run pawl -- ", "").split(" "), {
      PAWL_STORE: data.path,
      PAWL_LISTEN: "127.0.0.1:0",
    });
    const address = (await service.line(/^listening +/)).replace(/^listening +/, "");
    await service.line(/^ready/);
    const { stdout } = await run("bash", ["-c", ENQUEUE.replace("http://127.0.0.1:7295", address)]);
    expect(JSON.parse(stdout)).toMatchObject({ task: "greet", enqueued: "created" });
    await service.line(/greet +succeeded/);
    expect((await fetch(`${address}/v1/docs`)).status).toBe(200);
    service.interrupt();
    expect(await service.exit()).toBe(0);
  });

  test("names the commands that CI and the tests run, and no others", () => {
    const commands = blocks.filter(({ language }) => language === "bash").map(({ text }) => text.trim());
    expect(commands).toEqual(["npm ci && npm start", "npm ci && npm test", INSTALL, SERVICE, ENQUEUE]);
    // packed.test.ts installs the packages that these name. `npm ci` and `npm test` are what this very run comes from; `npm start` is what demo-terminal.test.ts starts.
    const ci = read(".ci/run");
    expect(ci).toMatch(/^step npm ci\b/m);
    expect(ci).toMatch(/^step npm test\b/m);
    expect(scripts.test).toBe("node scripts/test.mjs");
    expect(scripts.pawl).toBe("node --import tsx packages/server/src/cli/main.ts");
    expect(scripts.start).toBe("node --import tsx packages/server/src/cli/main.ts demo");
    expect(read("test/demo-terminal.test.ts")).toContain("--import tsx packages/server/src/cli/main.ts demo");
  });
});
