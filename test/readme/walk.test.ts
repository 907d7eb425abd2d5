import { execFile } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { ShellProcess } from "../support/processes/child-process.js";
import { freshDatabase, serverFor, urlOf } from "../support/servers/servers.js";
import { temporaryFolder } from "../support/temporary-folder.js";
import { blocksOf } from "./blocks.js";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../../", import.meta.url));

/**
 * A clone of what is committed. Its packages are linked, not installed anew: `npm ci` takes a minute and is what CI
 * begins with. Its own packages are its own.
 */
async function clone(): Promise<Disposable & { readonly path: string }> {
  const folder = temporaryFolder();
  await run("git", ["clone", "--quiet", root, folder.path]);
  const modules = join(folder.path, "node_modules");
  mkdirSync(modules);
  for (const name of readdirSync(join(root, "node_modules"))) {
    const own = { pawl: "../packages/pawl", "pawl-embedded": "../packages/embedded", "pawl-server": "../packages/server" }[name];
    symlinkSync(own ?? join(root, "node_modules", name), join(modules, name));
  }
  return folder;
}

async function freePort(): Promise<number> {
  const probe = createServer();
  const port = await new Promise<number>((resolve) => {
    probe.listen(0, "127.0.0.1", () => resolve((probe.address() as { port: number }).port));
  });
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

/** The commands of a text, in their order: of blocks in the shell's language or in none, continued lines in one. */
function commandsOf(markdown: string): readonly string[] {
  return blocksOf(markdown)
    .filter(({ language }) => language === "bash" || language === "")
    .flatMap(({ text }) => text.replaceAll(/ \\\n\s*/g, " ").split("\n"))
    .map((line) => line.replace(/ {2,}#.*$/, "").trim())
    .filter((line) => line !== "");
}

const sectionOf = (markdown: string, title: string) => markdown.split(/^## /m).find((section) => section.startsWith(title)) ?? "";

const server = serverFor("debian15");
const reason = server.available ? undefined : server.reason;

describe("a fresh clone", { timeout: 300_000 }, () => {
  test("runs the service as the README says, and the job it says", async () => {
    using here = await clone();
    const readme = readFileSync(join(here.path, "README.md"), "utf8");
    const [dev, enqueue, ...more] = commandsOf(sectionOf(readme, "As a service"));
    expect(more, "commands that nobody walks through").toEqual([]);

    // As it stands, but for the port: 7295 may be somebody's.
    const port = await freePort();
    await using service = new ShellProcess(dev ?? "", here.path, { PAWL_LISTEN: `127.0.0.1:${port}` });
    await service.line(/^ready/);
    const { stdout } = await run("bash", ["-c", (enqueue ?? "").replace(":7295", `:${port}`)], { cwd: here.path });
    const { id, ...answer } = JSON.parse(stdout) as { id: string };
    expect(answer).toMatchObject({ task: "greet", enqueued: "created" });
    await service.line(/greet +succeeded/);
    const job = await (await fetch(`http://127.0.0.1:${port}/v1/jobs/${id}`)).json();
    expect(job).toMatchObject({ state: "succeeded", output: "hello you" });
    const reference = await fetch(`http://127.0.0.1:${port}/v1/docs`);
    expect([reference.status, reference.headers.get("content-type")]).toEqual([200, expect.stringContaining("text/html")]);
    expect(readdirSync(here.path), "where the README says that its data is").toContain("data");
    service.interrupt();
    await service.exit(); // npm's own, which is the signal
    expect(service.lines.at(-1)).toMatch(/^stopped/);
  });

  test.skipIf(reason !== undefined)(
    `makes its first key and serves a Postgres with it, as docs/service.md says${reason ? ` (${reason})` : ""}`,
    async () => {
      using here = await clone();
      await using database = await freshDatabase("debian15");
      const tcp = server.available ? server.server.tcp : undefined;
      if (tcp === undefined) throw new Error("the server has no password to ask for");
      const { password = "", ...address } = tcp;
      const secrets = join(here.path, "secrets");
      mkdirSync(secrets);
      writeFileSync(join(secrets, "db"), `${password}\n`);
      const port = await freePort();
      /** A reader's own names in the place of those of the text. */
      const mine = (command: string) =>
        command
          .replaceAll("/run/secrets", secrets)
          .replaceAll("postgres://pawl@db.internal/app", urlOf(address, database.name))
          .replace("0.0.0.0:7295", `127.0.0.1:${port}`)
          .replace(/(^| )pawl /, "$1npm run --silent pawl -- ");

      const docs = readFileSync(join(here.path, "docs/service.md"), "utf8");
      const serve = commandsOf(docs).find((command) => command.startsWith("pawl serve") && command.includes("--auth keys")) ?? "";
      const [pepper = "", create = "", ...more] = commandsOf(sectionOf(docs, "First key"));
      expect([serve, pepper, create, more]).toEqual([
        expect.stringContaining("--api-keys-pepper"),
        expect.stringMatching(/^openssl /),
        expect.stringContaining("keys create"),
        [],
      ]);

      await run("bash", ["-c", mine(pepper)], { cwd: here.path });
      await using service = new ShellProcess(mine(serve), here.path, { PAWL_LOG_FORMAT: "lines" });
      await service.line(/^components +/);
      const env = { ...process.env, PAWL_STORE_PASSWORD: `file:${join(secrets, "db")}` };
      const { stdout: told } = await run("bash", ["-c", mine(create)], { cwd: here.path, env });
      const [key] = /pawl_\S+/.exec(told) ?? [];
      expect(key, told).toBeDefined();
      const ask = (headers: Record<string, string>) => fetch(`http://127.0.0.1:${port}/v1/api-keys`, { headers });
      expect((await ask({})).status).toBe(401);
      expect((await ask({ authorization: `Bearer ${key}` })).status).toBe(200);
      service.interrupt();
      await service.exit(); // npm's own, which is the signal
      expect(service.lines.at(-1)).toMatch(/^stopped/);
    },
  );
});
