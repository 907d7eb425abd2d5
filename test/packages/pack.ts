import { execFile } from "node:child_process";
import { cpSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../../", import.meta.url));
const tsc = join(root, "node_modules/typescript/bin/tsc");
/** bytes: a line for every file of a package */
const MAX_OUTPUT = 16 * 1_048_576;

export interface Packed {
  readonly name: string;
  readonly file: string;
  readonly integrity: string;
  readonly manifest: Manifest;
  /** the paths of all it holds */
  readonly files: readonly string[];
}

/** The fields read of a package.json. */
export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional: boolean }>>;
  readonly bin?: Readonly<Record<string, string>>;
}

/** Builds the packages anew, so that nothing is in them that was left behind by an earlier build, and packs them into a folder. */
export async function packAll(folder: string): Promise<Readonly<Record<"pawl" | "pawl-embedded" | "pawl-server", Packed>>> {
  const homes = { pawl: join(folder, "pawl"), embedded: join(folder, "embedded"), server: join(folder, "server") };
  for (const [name, home] of Object.entries(homes)) {
    mkdirSync(home, { recursive: true });
    cpSync(join(root, "packages", name, "package.json"), join(home, "package.json"));
  }
  cpSync(join(root, "packages/embedded/README.md"), join(homes.embedded, "README.md"));
  // The same files in half the time: whether the types are right is for `npm run typecheck` to say.
  const how = ["--composite", "false", "--incremental", "false", "--noCheck"];
  for (const name of ["pawl", "server"] as const)
    await run(process.execPath, [tsc, "-p", join(root, "packages", name), "--outDir", join(homes[name], "dist"), ...how]);
  await run(process.execPath, [join(root, "scripts/copy-assets.mjs"), join(homes.pawl, "dist"), join(homes.server, "dist/cli/main.js")]);
  return {
    pawl: await pack(homes.pawl, folder),
    "pawl-embedded": await pack(homes.embedded, folder),
    "pawl-server": await pack(homes.server, folder),
  };
}

async function pack(home: string, folder: string): Promise<Packed> {
  const { stdout } = await run("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", folder], { cwd: home, maxBuffer: MAX_OUTPUT });
  const [{ name, filename, integrity, files }] = JSON.parse(stdout) as [
    { name: string; filename: string; integrity: string; files: readonly { path: string }[] },
  ];
  const manifest = JSON.parse(readFileSync(join(home, "package.json"), "utf8")) as Manifest;
  return { name, file: join(folder, filename), integrity, manifest, files: files.map(({ path }) => path) };
}
