import { describe, expect, test } from "vitest";
import { temporaryFolder } from "./support/temporary-folder.js";
import { noTerminal, type Size, Terminal } from "./support/terminal.js";

const demo = (store: string) => `${process.execPath} --import tsx packages/server/src/cli/main.ts demo ${store}`;
const TITLE = /^ pawl · /;
const FOOT = /^ Ctrl-C finishes what runs/;
/** Rows that never change are painted once: where the terminal has moved them, only a picture painted anew puts them back. */
const PLACES: readonly (readonly [row: number, text: RegExp])[] = [
  [0, TITLE],
  [1, /^ data in /],
  [3, /^ queue +ready/],
  [-1, FOOT],
];

/** One whole picture and nothing else: what stands in it stands in its place, once. */
function fills({ columns, rows }: Size) {
  return (seen: readonly string[]): boolean =>
    seen.length === rows &&
    PLACES.every(([row, text]) => text.test(seen.at(row) ?? "") && seen.filter((one) => text.test(one)).length === 1) &&
    seen.every((row) => row.length <= columns);
}

const has = (text: RegExp) => (rows: readonly string[]) => rows.some((row) => text.test(row));
const reason = noTerminal();

describe.skipIf(reason !== undefined)(reason === undefined ? "npm start in a terminal" : `npm start in a terminal (${reason})`, () => {
  test("repaints one picture in place, follows the size, and on Ctrl-C gives the terminal back", { timeout: 120_000 }, async () => {
    using data = temporaryFolder();
    const size = { columns: 100, rows: 30 };
    await using terminal = await Terminal.start(demo(data.path), size);

    const first = await terminal.shows("the first picture", fills(size));
    expect(await terminal.modes()).toEqual({ cursor: false, wraps: false, alternate: true });
    const later = await terminal.shows("work that is done, in the same picture", (rows) => fills(size)(rows) && has(/✓ mail\.welcome/)(rows));
    expect(later).not.toEqual(first);

    for (const other of [
      { columns: 60, rows: 20 },
      { columns: 120, rows: 40 },
    ]) {
      await terminal.resize(other);
      await terminal.shows(`the picture at ${other.columns} × ${other.rows}`, fills(other));
    }

    await terminal.press("C-c");
    const end = await terminal.shows("the end", has(/^exit 0$/));
    expect(await terminal.modes()).toEqual({ cursor: true, wraps: true, alternate: false });
    expect(
      end.filter((row) => row !== ""),
      "what was there before it, and its last words",
    ).toEqual([
      expect.stringMatching(/^opening/),
      expect.stringMatching(/^data/),
      expect.stringMatching(/^engine/),
      expect.stringMatching(/^durability/),
      expect.stringMatching(/^found/),
      expect.stringMatching(/^api +http:\/\/127\.0\.0\.1:\d+\/v1\/docs$/),
      expect.stringMatching(/^stopped +\d+ succeeded, \d+ died; /),
      "exit 0",
    ]);
  });

  test("gives the terminal back when a second Ctrl-C ends it at once", { timeout: 120_000 }, async () => {
    const size = { columns: 100, rows: 30 };
    await using terminal = await Terminal.start(demo("memory:"), size);
    await terminal.shows("a job that takes a while", (rows) => fills(size)(rows) && has(/^ {3}video\.encode/)(rows));
    await terminal.press("C-c");
    await terminal.shows("that it is stopping", has(/^ finishing \d+ running.*Ctrl-C again exits at once/));
    // The same one, passed on by npm, does not count: only one some 300 ms later does, so this asks until it is heard.
    await terminal.shows("the end", (rows) => {
      void terminal.press("C-c");
      return has(/exit 130$/)(rows);
    });
    expect(await terminal.modes()).toEqual({ cursor: true, wraps: true, alternate: false });
  });
});
