/**
 * Every relative link in the Markdown files leads to a file, every anchor to a heading, and every test named after a
 * link, `[leases.test.ts](…): _its name_`, is in that file.
 */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";

const root = resolve(import.meta.dirname, "..");
const SKIPPED = new Set(["node_modules", "dist", ".git", "data", ".test-servers", "coverage"]);

function* markdown(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (SKIPPED.has(entry.name)) continue;
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* markdown(path);
    else if (entry.name.endsWith(".md")) yield path;
  }
}

/** What is quoted as code is not a link. */
function withoutCode(text) {
  return text.replace(/^```[\s\S]*?^```/gm, "").replace(/`[^`\n]*`/g, "");
}

/** The anchors GitHub makes of headings. */
function anchors(text) {
  const found = new Map();
  return new Set(
    [...text.matchAll(/^#{1,6} +(.+)$/gm)].map(([, heading]) => {
      const slug = heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, "")
        .trim()
        .replaceAll(" ", "-");
      const count = found.get(slug) ?? 0;
      found.set(slug, count + 1);
      return count === 0 ? slug : `${slug}-${count}`;
    }),
  );
}

let links = 0;
let broken = 0;
function complain(file, what) {
  console.error(`${relative(root, file)}: ${what}`);
  broken++;
}

for (const file of markdown(root)) {
  const text = readFileSync(file, "utf8");
  for (const [, target] of withoutCode(text).matchAll(/\]\(([^)\s]+)\)/g)) {
    if (/^[a-z]+:/i.test(target)) continue;
    links++;
    const [path, anchor] = target.split("#");
    const to = path === "" ? file : resolve(dirname(file), decodeURIComponent(path));
    const missing = !existsSync(to) || (anchor && statSync(to).isFile() && to.endsWith(".md") && !anchors(readFileSync(to, "utf8")).has(anchor));
    if (missing) complain(file, `${target} leads nowhere`);
  }
  for (const [, path, , name] of text.matchAll(/\]\(([^)\s]+\.ts)\)[^:|<\n]{0,40}: ([*_])(.+?)\2(?=[\s,.<]|$)/gm)) {
    const to = resolve(dirname(file), path);
    if (existsSync(to) && !readFileSync(to, "utf8").includes(name)) complain(file, `${path} has no test "${name}"`);
  }
}
console.log(`links: ${links}, ${broken} broken`);
process.exitCode = broken === 0 ? 0 : 1;
