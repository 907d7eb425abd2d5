import { createHash } from "node:crypto";
import * as fs from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const SOURCES = ["packages/pawl/src", "packages/server/src", "test/support", "examples"];
/** Files of the conformance suite that processes of tests need: it has tests beside them. */
const CONFORMANCE = ["packages/pawl/conformance/duties.ts"];
const SKIPPED = /\.test\.ts$|\.d\.ts$|\/conformance\//;
/** A removed build may still be in use by another run for this long. ms */
const KEPT_MS = 3_600_000;

const CACHE = join(ROOT, "node_modules/.cache/pawl-tests");

/**
 * The library, the service and the test support as plain JavaScript, file by file, made once per state of the sources: a process that
 * tests start by the dozen then starts four times as fast as through a loader. Answers the folder that stands for the
 * repository's. It lies under node_modules, so that packages are found from there.
 */
export async function transpile(): Promise<string> {
  const files = sources();
  const folder = folderOf(files);
  if (fs.existsSync(folder)) return folder;

  fs.mkdirSync(CACHE, { recursive: true });
  removeOld(CACHE);
  const draft = fs.mkdtempSync(join(CACHE, "draft-"));
  fs.chmodSync(draft, 0o755); // some of the processes are another user
  for (const file of files) await write(join(draft, relative(ROOT, file)), fs.readFileSync(file, "utf8"));
  fs.writeFileSync(join(draft, "package.json"), '{ "type": "module" }');
  const doors = ["worker", "adapters", "testing", "service", "store"].map((door) => [`./${door}`, `./src/${door}.js`]);
  linkPackage(draft, "pawl", { ".": "./src/index.js", ...Object.fromEntries(doors) });
  linkPackage(draft, "server", { ".": "./src/index.js", "./telemetry": "./src/telemetry/index.js" });
  try {
    fs.renameSync(draft, folder);
  } catch {
    // Somebody else was first: it is the same.
    fs.rmSync(draft, { recursive: true, force: true });
  }
  return folder;
}

/** Found by its name from the others, here and not in the repository. */
function linkPackage(draft: string, folder: string, exports: Readonly<Record<string, string>>): void {
  const { name, version } = JSON.parse(fs.readFileSync(join(ROOT, "packages", folder, "package.json"), "utf8")) as { name: string; version: string };
  const description = JSON.stringify({ name, version, type: "module", exports: { ...exports, "./package.json": "./package.json" } });
  fs.writeFileSync(join(draft, "packages", folder, "package.json"), description);
  fs.mkdirSync(join(draft, "node_modules"), { recursive: true });
  fs.symlinkSync(join("../packages", folder), join(draft, "node_modules", name));
}

/** Where it is, if it was made before. */
export function transpiled(): string | undefined {
  const folder = folderOf(sources());
  return fs.existsSync(folder) ? folder : undefined;
}

function sources(): readonly string[] {
  const found = SOURCES.flatMap((folder) => filesIn(join(ROOT, folder))).filter((file) => /\.(ts|sql)$/.test(file) && !SKIPPED.test(file));
  return [...found, ...CONFORMANCE.map((file) => join(ROOT, file))];
}

function folderOf(files: readonly string[]): string {
  const state = createHash("sha256");
  for (const file of files) state.update(relative(ROOT, file)).update(fs.readFileSync(file));
  return join(CACHE, state.digest("hex").slice(0, 16));
}

async function write(to: string, text: string): Promise<void> {
  fs.mkdirSync(dirname(to), { recursive: true });
  if (to.endsWith(".sql")) {
    fs.writeFileSync(to, text);
    return;
  }
  // Here, since it takes a second to load, and who finds it made before need not.
  const { default: ts } = await import("typescript");
  const compilerOptions = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true, inlineSourceMap: true };
  fs.writeFileSync(to.replace(/\.ts$/, ".js"), ts.transpileModule(text, { compilerOptions, fileName: to }).outputText);
}

function filesIn(folder: string): readonly string[] {
  return fs
    .readdirSync(folder, { recursive: true, withFileTypes: true })
    .flatMap((entry) => (entry.isFile() ? join(entry.parentPath, entry.name) : []))
    .sort();
}

function removeOld(cache: string): void {
  for (const name of fs.readdirSync(cache)) {
    const path = join(cache, name);
    if (Date.now() - (fs.statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0) > KEPT_MS) fs.rmSync(path, { recursive: true, force: true });
  }
}
