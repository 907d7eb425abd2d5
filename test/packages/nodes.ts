import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const files = ["package.json", "package-lock.json"].map((name) => fileURLToPath(new URL(`nodes/${name}`, import.meta.url)));
const [manifest = "", lock = ""] = files.map((file) => readFileSync(file, "utf8"));
/** Made once for what the lock says: it is half a gigabyte. */
const folder = fileURLToPath(
  new URL(`../../node_modules/.cache/pawl-nodes-${createHash("sha256").update(lock).digest("hex").slice(0, 12)}`, import.meta.url),
);
const done = join(folder, ".done");

export interface NodeVersion {
  readonly major: number;
  /** undefined: the lock has none for this platform */
  readonly folder: string | undefined;
  readonly name: string;
}

/** The versions of Node that are supported: of the oldest major its first release that is. */
export const NODES: readonly NodeVersion[] = [20, 22, 24].map((major) => {
  const name = `node_modules/node-${major}-${process.arch}`;
  const entry = (JSON.parse(lock) as { packages: Record<string, { version: string; os: string }> }).packages[name];
  return entry?.os === process.platform
    ? { major, folder: join(folder, name, "bin"), name: `Node ${entry.version}` }
    : {
        major,
        folder: undefined,
        name: `Node ${major} (test/packages/nodes has no package with its program for ${process.platform} ${process.arch})`,
      };
});

/** Gets those programs, as packages: nothing of them is run to install them. */
export async function installNodes(): Promise<void> {
  if (existsSync(done)) return;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), manifest);
  writeFileSync(join(folder, "package-lock.json"), lock);
  await run("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd: folder });
  writeFileSync(done, "");
}

/** Runs as if that Node were the only one installed. */
export function withNode({ folder: bin = dirname(process.execPath) }: NodeVersion): NodeJS.ProcessEnv {
  const { NODE_OPTIONS, NODE_PATH, ...env } = process.env;
  return { ...env, NO_COLOR: "1", PATH: `${bin}:${process.env.PATH}` };
}
