import { describe, expect, test } from "vitest";
import { open, task } from "../../packages/pawl/src/index.js";
import { builtPawl } from "../support/processes/child-process.js";
import { temporaryFolder } from "../support/temporary-folder.js";
import { noTerminal, Terminal } from "../support/terminal.js";

const SIZE = { columns: 80, rows: 24 };
const has = (text: RegExp) => (rows: readonly string[]) => rows.some((row) => text.test(row));
const fills = (rows: readonly string[]) =>
  rows.length === SIZE.rows && rows.every((row) => [...row].length <= SIZE.columns) && /^ pawl top · /.test(rows[0] ?? "");
const both = (text: RegExp) => (rows: readonly string[]) => fills(rows) && has(text)(rows);
const reason = noTerminal();

const send = task("mail.send", async () => {});
const encode = task("video.encode", { queue: "media", retry: 0 }, async () => {
  throw new Error(`the film is gone; ${"we looked on every shelf ".repeat(12)}and did not find it`);
});

describe.skipIf(reason !== undefined)(reason === undefined ? "pawl top in a terminal" : `pawl top in a terminal (${reason})`, () => {
  test("shows a store live in 80 × 24, and pauses, filters, drills and redrives by keys", { timeout: 180_000 }, async () => {
    using data = temporaryFolder();
    await using pawl = await open(data.path, { tasks: [send, encode], maintenance: false });
    await pawl.enqueueMany(send, Array(20).fill(undefined), { queue: "mail" });
    const film = await pawl.enqueue(encode);
    const worker = await pawl.work({ name: "ana", queues: ["media"] });
    await pawl.jobs.wait(film);

    await using terminal = await Terminal.start(`${process.execPath} ${builtPawl()} top --every 200ms --store ${data.path}`, SIZE);
    await terminal.shows("the queues", both(/^ mail +20 +0/));
    expect(await terminal.modes()).toEqual({ cursor: false, wraps: false, alternate: true });

    await terminal.press("p");
    await terminal.shows("that mail is paused", both(/^ mail \(paused\) +20/));
    expect((await pawl.queues.get("mail")).paused).toBe(true);
    await terminal.press("p");
    await terminal.shows("that mail goes on", both(/^ mail +20/));

    await terminal.press("s");
    await terminal.shows("that it is sorted by the next column", both(/^ queue +ready +running▾ /));

    await terminal.press("3");
    await terminal.shows("the worker", both(/^ ana +.*mail\.send,video\.encode|^ ana +.*media/));
    await terminal.press("2");
    await terminal.shows("a lane nobody serves", both(/^ mail +5 +default +mail\.send +0 +no live worker/));

    await terminal.press("1");
    await terminal.press("/");
    for (const key of "med") await terminal.press(key);
    await terminal.press("Enter");
    await terminal.shows("what was filtered", (rows) => both(/^ media +0 +0 +0 +0 +1/)(rows) && !has(/^ mail /)(rows));
    await terminal.press("Enter");
    for (let n = 0; n < 3; n++) await terminal.press("f");
    await terminal.shows("the dead job of that queue", both(/^ dead +video\.encode +media +default +1 .*Error: the film/));
    await terminal.press("Enter");
    await terminal.shows(
      "all about it",
      (rows) => both(new RegExp(`^ job +${film.id}`))(rows) && has(/failed → dead$/)(rows) && has(/^ +Error: the film is gone/)(rows),
    );
    await terminal.shows("its failure whole, in as many lines as it needs", both(/and did not find it/));
    await terminal.press("r");
    await terminal.shows("that it was redriven", both(/redrive, dead → ready/));

    await terminal.resize({ columns: 60, rows: 12 });
    await terminal.shows("the same in a smaller window", (rows) => rows.length === 12 && /^ pawl top/.test(rows[0] ?? "") && has(/^ job +/)(rows));
    await terminal.press("End");
    await terminal.shows("the end of what there is about it", (rows) => rows.length === 12 && has(/did not find it/)(rows) && !has(/^ job +/)(rows));
    await terminal.press("q");
    await terminal.shows("the end", has(/^exit 0$/));
    expect(await terminal.modes()).toEqual({ cursor: true, wraps: true, alternate: false });
    await worker.stop();
  });
});
