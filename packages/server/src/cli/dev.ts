import { existsSync } from "node:fs";
import { relative, resolve } from "node:path";
import type { Command } from "commander";
import { milliseconds } from "pawl";
import { type Configuration, readConfiguration, type Sources } from "../config/read.js";
import { flagOf, type SettingName } from "../config/settings.js";
import { printLines } from "../live/lines.js";
import { ledTo } from "../serve/led-to.js";
import { type Service, startService } from "../serve/service.js";
import { filesOf, folderOf, loadTaskFiles } from "../serve/task-files.js";
import { watchFolders } from "../serve/watch.js";
import { WorkerProcess } from "../serve/worker-process.js";
import { configured } from "./configured.js";
import { hurry, lastWord } from "./ending.js";
import { EXIT } from "./exit.js";
import { greet, print } from "./serve.js";
import type { Act } from "./session.js";
import { sourcesOf, withSettings } from "./settings.js";
import { untilStopped } from "./stop.js";

export function build(command: Command, act: Act): void {
  withSettings(command).argument("[tasks...]", "files or folders whose modules export tasks (default: those of the configuration, or ./tasks)");
  act(command, (_, __, ...places) => configured(() => dev(withPlaces(sourcesOf(command), places.flat()))));
}

/** `pawl dev`: everything on this machine and one port; the tasks in a process of their own, replaced when a file changes. */
async function dev(sources: Sources): Promise<void> {
  const configuration = await readConfiguration(sources);
  let parts: Parts | undefined;
  const stopped = untilStopped(() => {
    parts?.service.kill();
    return parts?.worker?.kill();
  });
  parts = await startParts(configuration, sources);
  const { service, worker } = parts;
  await greet(service, configuration, print);
  const hush = printLines(service.pawl, print);
  await worker?.replace();
  const unwatch = reloadOnChange(configuration, worker);
  print("ready       Ctrl-C finishes what runs, then exits");
  await stopped;
  print("stopping    finishing what runs; Ctrl-C again exits at once");
  unwatch();
  const { settings } = configuration;
  const relax = hurry(2 * milliseconds(settings["shutdown.drain"]) + milliseconds(settings["shutdown.delay"]), print);
  const codes = (await worker?.stop()) ?? [];
  await service.stop();
  hush();
  // Its worker has said how many.
  if (codes.includes(EXIT.unended)) process.exit(EXIT.unended);
  lastWord(await service.pawl.unended(), print);
  relax();
}

const USUAL = "./tasks";

/** Those named on the command line; or else ./tasks, if it is there and nothing says otherwise. */
function withPlaces(sources: Sources, places: readonly string[]): Sources {
  const { flags, folder } = sources;
  if (places.length > 0) return { ...sources, flags: { ...flags, tasks: places } };
  return existsSync(resolve(folder, USUAL)) ? { ...sources, usual: { tasks: [USUAL] } } : sources;
}

interface Parts {
  readonly service: Service;
  /** undefined: it is in this process */
  readonly worker: WorkerProcess | undefined;
}

/** Where several processes can share the store, the worker has one of its own; where they cannot, everything is in this one. */
async function startParts(configuration: Configuration, sources: Sources): Promise<Parts> {
  const world = { env: sources.env, say: print };
  const { tasks, ...rest } = configuration.settings;
  // What is wrong with them is told before anything is started.
  if (tasks !== undefined) {
    const found = await loadTaskFiles(tasks, configuration.origin("tasks") ?? USUAL);
    print(`tasks       ${found.tasks.map(({ name }) => name).join(", ")}`);
  }
  const service = await startService({ ...configuration, settings: { ...rest, roles: ["api", "maintenance"] } }, world);
  const { engine } = await service.pawl.info();
  if (engine === "postgres" || engine === "embedded")
    return { service, worker: new WorkerProcess({ args: workerArgs(sources, configuration), hear: print, isReplaced: wasStuck }) };
  await service.stop();
  return { service: await startService(configuration, world), worker: undefined };
}

/** What a worker exits with that asks for another one. */
function wasStuck(code: number | null): boolean {
  if (code === EXIT.stuck) print("replacing   the worker, whose handlers do not end");
  return code === EXIT.stuck;
}

/**
 * This very program, told to be a worker. Flags hold no secrets, so they can be passed on. It must not listen where this
 * process does, which the environment or the file may tell it: a flag comes before both.
 */
function workerArgs({ flags, usual, file }: Sources, { origin }: Configuration): readonly string[] {
  const given = Object.entries({ ...usual, ...flags } as Record<SettingName, unknown>) as [SettingName, unknown][];
  const passed = given.filter(([name]) => name !== "roles" && name !== "listen");
  const words = passed.flatMap(([name, value]) => [flagOf(name), String(value)]);
  return [
    ...process.execArgv,
    process.argv[1] as string,
    "serve",
    ...(file === undefined ? [] : ["--config", file]),
    ...words,
    ...(origin("listen") === undefined ? [] : [flagOf("listen"), "127.0.0.1:0"]),
    flagOf("roles"),
    "worker",
  ];
}

function reloadOnChange({ settings: { tasks = [] } }: Configuration, worker: WorkerProcess | undefined): () => void {
  if (tasks.length === 0) print(`tasks       none yet: say where they are, as in pawl dev ${USUAL}`);
  // By the names that a watcher has for them.
  const tasksIn = (files: readonly string[]) =>
    ledTo(
      tasks.flatMap((place) => filesOf(place).map((file) => relative("", file))),
      files,
    );
  return watchFolders(tasks.map(folderOf), tasksIn, async (files) => {
    const what = files.length > 3 ? `${files.slice(0, 3).join(", ")} and ${files.length - 3} more` : files.join(", ");
    if (worker === undefined) print(`changed     ${what}; start again to load it: this store serves one process`);
    else print((await worker.replace()) ? `reloaded    ${what}` : `kept        the tasks there were: ${what} does not load`);
  });
}
