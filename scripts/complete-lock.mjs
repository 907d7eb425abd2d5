// Completes package-lock.json after `npm install` on a machine whose registry lacks some platforms' builds of a tool.
// npm leaves such optional packages out of the lock, and then `npm ci` refuses the lock as incomplete everywhere. An
// entry with version, os and cpu is all it takes: where the platform does not match it is skipped, where it does it is
// fetched as usual. `node scripts/complete-lock.mjs bench` does the same in that folder.
import { readFileSync, writeFileSync } from "node:fs";

const FILE = new URL(`../${process.argv[2] ?? "."}/package-lock.json`, import.meta.url);
const lock = JSON.parse(readFileSync(FILE, "utf8"));
const { packages } = lock;
const added = [];

for (const [at, { optionalDependencies = {}, dev }] of Object.entries(packages)) {
  for (const [name, version] of Object.entries(optionalDependencies)) {
    const nested = `${at}/node_modules/${name}`;
    const hoisted = `node_modules/${name}`;
    if (packages[nested] || packages[hoisted] || !/^\d/.test(version)) continue;
    packages[hoisted] = { version, ...platformOf(name), ...(dev ? { dev } : {}), optional: true };
    added.push(`${name}@${version}`);
  }
}

lock.packages = Object.fromEntries(Object.entries(packages).sort(([a], [b]) => (a < b ? -1 : 1)));
writeFileSync(FILE, `${JSON.stringify(lock, undefined, 2)}\n`);
console.log(added.length === 0 ? "package-lock.json is complete" : `added ${added.length}: ${added.join(", ")}`);

/** What npm would have read in the package: its name says it. */
function platformOf(name) {
  const words = name.split("/").at(-1).split(/[-.]/);
  const find = (known) => words.find((word) => known.includes(word));
  const os = find(["android", "darwin", "freebsd", "linux", "netbsd", "openbsd", "openharmony", "sunos", "win32", "aix"]);
  const cpu = find(["arm64", "x64", "arm", "ia32", "ppc64", "s390x", "riscv64", "loong64", "mips64el", "wasm32"]);
  const libc = words.includes("musl") ? "musl" : words.includes("gnu") || words.includes("gnueabihf") ? "glibc" : undefined;
  return { ...(cpu ? { cpu: [cpu] } : {}), ...(libc ? { libc: [libc] } : {}), ...(os ? { os: [os] } : {}) };
}
