import { resolve } from "node:path";
import { open, type Pawl } from "pawl";
import { serviceOf } from "pawl/service";
import { openShop } from "../../demo/shop.js";
import { shopTasks } from "../../demo/tasks.js";
import { BulkTask } from "../../http/tasks/bulk-task.js";
import { schemaCompiler } from "../../json-schema/input-schema.js";
import { openLocalApi } from "../../run/local-api.js";
import { DemoBoard } from "../../terminal/demo-board.js";
import { demoScreen } from "../../terminal/demo-screen.js";
import { paintOn } from "../../terminal/painter.js";
import { printActivity } from "../../terminal/print-activity.js";
import { durabilityOf, engineName, unfinished, unfinishedText } from "../../terminal/store-phrases.js";
import { reportStopped } from "../end-process.js";
import { untilStopped } from "../stop-signals.js";

export interface DemoOptions {
  readonly plain?: boolean;
  readonly engine?: "native" | "pglite";
}

/** `pawl demo`: a small shop on the embedded store, with its work shown as it moves. */
export async function demo(store: string, options: DemoOptions): Promise<void> {
  const location = storeLocation(store);
  if (!isUrl(location)) print(`opening     ${location}`);
  const bulk = new BulkTask();
  const pawl = await open(location, {
    tasks: [...shopTasks, bulk.task],
    allowUnknownTasks: true,
    compileSchema: schemaCompiler(),
    // A demo is started again and again, and nobody reads last month's.
    keep: { jobs: "1d", dead: "7d" },
    // Somebody sits in front of it.
    postgres: { startupWait: "5s" },
    ...(options.engine === undefined ? {} : { engine: options.engine }),
  });
  bulk.attach(pawl);
  await printStoreInfo(pawl);
  const api = await openLocalApi(pawl);
  print(`api         ${api.address}/v1/docs`);
  const worker = await pawl.work({ concurrency: { total: 8, queues: { media: 2 } }, name: "demo" });
  const stopped = untilStopped(() => worker.kill());
  const board = new DemoBoard(pawl, worker, await pawl.info(), api.address);
  const { stdout } = process;
  const live = stdout.isTTY && options.plain !== true && process.env.TERM !== "dumb";
  const stopShowing = live ? paintOn(stdout, (size) => demoScreen(board.picture(), size)).hide : printActivity(pawl, print);
  const closeShop = openShop(pawl, () => {});

  await stopped;
  if (!live) print("stopping: finishing what runs; Ctrl-C again exits at once");
  await Promise.all([closeShop(), api.close()]);
  await worker.stop();
  await board.stop();
  stopShowing();
  const summary = await summaryLine(pawl, board);
  await pawl.close();
  reportStopped(await serviceOf(pawl).unended(), print, summary);
}

/** A word is a folder here, where the library would take it for a forgotten scheme. */
function storeLocation(store: string): string {
  return isUrl(store) ? store : resolve(store);
}

function isUrl(store: string): boolean {
  return /^[a-z]{2,}:/i.test(store);
}

async function printStoreInfo(pawl: Pawl): Promise<void> {
  const info = await pawl.info();
  const counts = await pawl.counts();
  const { succeeded, dead } = counts;
  print(`data        ${info.place}`);
  print(`engine      ${engineName(info)}`);
  print(`durability  ${durabilityOf(info)}`);
  if (unfinished(counts) + succeeded + dead === 0) print("found       nothing yet: this is a first start");
  else print(`found       ${unfinishedText(counts)}, ${succeeded.toLocaleString("en")} succeeded, ${dead.toLocaleString("en")} dead`);
}

async function summaryLine(pawl: Pawl, { succeeded, dead }: DemoBoard): Promise<string> {
  const counts = await pawl.counts();
  return `stopped     ${succeeded} succeeded, ${dead} died; ${unfinishedText(counts)} left`;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
