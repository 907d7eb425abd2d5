import { resolve } from "node:path";
import { open, type Pawl } from "pawl";
import { openShop } from "../demo/shop.js";
import { shopTasks } from "../demo/tasks.js";
import { BulkTask } from "../http/bulk-task.js";
import { schemaCompiler } from "../http/json-schema.js";
import { Board } from "../live/board.js";
import { printLines } from "../live/lines.js";
import { screen } from "../live/screen.js";
import { showOn } from "../live/terminal.js";
import { durabilityOf, engineName, unfinished, unfinishedWords } from "../live/words.js";
import { apiBeside } from "../serve/api-beside.js";
import { lastWord } from "./ending.js";
import { untilStopped } from "./stop.js";

export interface DemoOptions {
  readonly plain?: boolean;
  readonly engine?: "native" | "pglite";
}

/** `pawl demo`: a small shop on the embedded store, with its work shown as it moves. */
export async function demo(store: string, options: DemoOptions): Promise<void> {
  const place = placeOf(store);
  if (!isUrl(place)) print(`opening     ${place}`);
  const bulk = new BulkTask();
  const pawl = await open(place, {
    tasks: [...shopTasks, bulk.task],
    anyTask: true,
    compileSchema: schemaCompiler(),
    // A demo is started again and again, and nobody reads last month's.
    keep: { finished: "1d", dead: "7d" },
    // Somebody sits in front of it.
    postgres: { patience: "5s" },
    ...(options.engine === undefined ? {} : { engine: options.engine }),
  });
  bulk.attach(pawl);
  await greet(pawl);
  const api = await apiBeside(pawl);
  print(`api         ${api.address}/v1/docs`);
  const worker = await pawl.work({ concurrency: 8, slots: { queues: { media: 2 } }, name: "demo" });
  const stopped = untilStopped(() => worker.kill());
  const board = new Board(pawl, worker, await pawl.info(), api.address);
  const { stdout } = process;
  const live = stdout.isTTY && options.plain !== true && process.env.TERM !== "dumb";
  const hide = live ? showOn(stdout, (size) => screen(board.picture(), size)).hide : printLines(pawl, print);
  const closeShop = openShop(pawl, () => {});

  await stopped;
  if (!live) print("stopping: finishing what runs; Ctrl-C again exits at once");
  await Promise.all([closeShop(), api.close()]);
  await worker.stop();
  await board.stop();
  hide();
  const words = await goodbye(pawl, board);
  await pawl.close();
  lastWord(await pawl.unended(), print, words);
}

/** A word is a folder here, where the library would take it for a forgotten scheme. */
function placeOf(store: string): string {
  return isUrl(store) ? store : resolve(store);
}

function isUrl(store: string): boolean {
  return /^[a-z]{2,}:/i.test(store);
}

async function greet(pawl: Pawl): Promise<void> {
  const info = await pawl.info();
  const counts = await pawl.counts();
  const { succeeded, dead } = counts;
  print(`data        ${info.place}`);
  print(`engine      ${engineName(info)}`);
  print(`durability  ${durabilityOf(info)}`);
  if (unfinished(counts) + succeeded + dead === 0) print("found       nothing yet: this is a first start");
  else print(`found       ${unfinishedWords(counts)}, ${succeeded.toLocaleString("en")} succeeded, ${dead.toLocaleString("en")} dead`);
}

async function goodbye(pawl: Pawl, { succeeded, dead }: Board): Promise<string> {
  const counts = await pawl.counts();
  return `stopped     ${succeeded} succeeded, ${dead} died; ${unfinishedWords(counts)} left`;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
