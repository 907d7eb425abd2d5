/**
 * `npm run docs:pictures`: the pictures of the docs, taken of a terminal in which `pawl top` looks at the store that
 * `pawl demo` works on. Numbers and times differ each time, so no test compares them; take them anew when `top` changes.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { Terminal } from "../test/support/terminal.js";
import { terminalSvg } from "./terminal-svg.js";

const IMAGES = resolve(import.meta.dirname, "../docs/images");
const SIZE = { columns: 80, rows: 24 };
const PAWL = `${process.execPath} --import tsx packages/server/src/cli/main.ts`;
const has = (text: RegExp) => (rows: readonly string[]) => rows.some((row) => text.test(row));

async function take(terminal: Terminal, name: string, title: string): Promise<void> {
  // Where it happened to be is nobody's business.
  const rows = (await terminal.picture()).map((row) => row.replaceAll(folder, "./shop".padEnd(folder.length)).replaceAll(`${process.cwd()}/`, ""));
  writeFileSync(join(IMAGES, `${name}.svg`), terminalSvg(rows, { columns: SIZE.columns, title }));
  console.log(`docs/images/${name}.svg`);
}

const folder = mkdtempSync(join(tmpdir(), "shop-"));
mkdirSync(IMAGES, { recursive: true });
try {
  await using demo = await Terminal.start(`${PAWL} demo ${folder}`, SIZE);
  await demo.shows("a job that was tried again and died", has(/dead after [2-9] attempts/));
  await using top = await Terminal.start(`${PAWL} top --store ${folder}`, SIZE);
  // A rate needs two looks, and a picture of an idle shop shows little.
  await top.shows("queues at work", (rows) => has(/^ \S+ +\d+ +[1-9]/)(rows) && has(/ [1-9]\d*\.\d\/s /)(rows));
  await take(top, "top", "pawl top: the queues of a store");

  await top.press("4");
  for (const state of ["ready", "scheduled", "dead"]) {
    await top.press("f");
    await top.shows(`jobs that are ${state}`, has(new RegExp(`4 jobs +${state}`)));
  }
  await top.press("/");
  for (const letter of "503") await top.press(letter);
  await top.press("Enter");
  await top.shows("the job that died of it", has(/^ dead .*503/));
  await top.press("Enter");
  await top.shows("all about it", has(/^ job +\S+/));
  await take(top, "top-job", "pawl top: a dead job, with its attempts");

  await demo.press("C-c");
  await demo.shows("its end", has(/^exit \d/));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
