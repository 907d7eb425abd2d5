import { existsSync } from "node:fs";
import { relative, resolve } from "node:path";
import type { Command } from "commander";
import { milliseconds, serviceOf } from "pawl/service";
import { type Configuration, readConfiguration, type Sources } from "../../config/read.js";
import { flagOf, type SettingName } from "../../config/settings.js";
import { filesOf, folderOf, loadTaskFiles } from "../../run/load-tasks.js";
import { moduleDependencies } from "../../run/module-dependencies.js";
import { type Service, startService } from "../../run/service.js";
import { watchFolders } from "../../run/watch-folders.js";
import { WorkerProcess } from "../../run/worker-process.js";
import { printActivity } from "../../terminal/print-activity.js";
import { forceExitAfter, reportStopped } from "../end-process.js";
import { EXIT } from "../exit.js";
import type { Act } from "../session.js";
import { sourcesOf, withSettings } from "../settings.js";
import { untilStopped } from "../stop-signals.js";
import { print, printServiceInfo } from "./serve.js";
import { withConfiguration } from "./with-configuration.js";

export function build(command: Command, act: Act): void {
  withSettings(command).argument("[tasks...]", "files or folders whose modules export tasks (default: those of the configuration, or ./tasks)");
  act(command, (_, __, ...paths) => withConfiguration(() => dev(withTaskPaths(sourcesOf(command), paths.flat()))));
}

/** `pawl dev`: everything on this machine and one port; the tasks in a process of their own, replaced when a file changes. */
async function dev(sources: Sources): Promise<void> {
  const configuration = await readConfiguration(sources);
  let processes: DevProcesses | undefined;
  const stopped = untilStopped(() => {
    processes?.service.kill();
    return processes?.worker?.kill();
  });
  processes = await startProcesses(configuration, sources);
  const { service, worker } = processes;
  await printServiceInfo(service, configuration, print);
  const stopPrinting = printActivity(service.pawl, print);
  await worker?.replace();
  const stopWatching = reloadOnChange(configuration, worker);
  print("ready       Ctrl-C finishes what runs, then exits");
  await stopped;
  print("stopping    finishing what runs; Ctrl-C again exits at once");
  stopWatching();
  const { settings } = configuration;
  const cancelForcedExit = forceExitAfter(2 * milliseconds(settings["shutdown.grace"]) + milliseconds(settings["shutdown.delay"]), print);
  const codes = (await worker?.stop()) ?? [];
  await service.stop();
  stopPrinting();
  // Its worker has said how many.
  if (codes.includes(EXIT.unended)) process.exit(EXIT.unended);
  reportStopped(await serviceOf(service.pawl).unended(), print);
  cancelForcedExit();
}

const DEFAULT_TASKS = "./tasks";

/** Those named on the command line; or else ./tasks, if it is there and nothing says otherwise. */
function withTaskPaths(sources: Sources, paths: readonly string[]): Sources {
  const { flags, folder } = sources;
  if (paths.length > 0) return { ...sources, flags: { ...flags, tasks: paths } };
  return existsSync(resolve(folder, DEFAULT_TASKS)) ? { ...sources, fallbacks: { tasks: [DEFAULT_TASKS] } } : sources;
}

interface DevProcesses {
  readonly service: Service;
  /** undefined: it is in this process */
  readonly worker: WorkerProcess | undefined;
}

/** Where several processes can share the store, the worker has one of its own; where they cannot, everything is in this one. */
async function startProcesses(configuration: Configuration, sources: Sources): Promise<DevProcesses> {
  const environment = { env: sources.env, writeLine: print };
  const { tasks, ...rest } = configuration.settings;
  // What is wrong with them is told before anything is started.
  if (tasks !== undefined) {
    const found = await loadTaskFiles(tasks, configuration.origin("tasks") ?? DEFAULT_TASKS);
    print(`tasks       ${found.tasks.map(({ name }) => name).join(", ")}`);
  }
  const service = await startService({ ...configuration, settings: { ...rest, components: ["api", "maintenance"] } }, environment);
  const { capabilities } = await service.pawl.info();
  if (capabilities.shared)
    return { service, worker: new WorkerProcess({ args: workerArgs(sources, configuration), onLine: print, isReplaced: wasStuck }) };
  await service.stop();
  return { service: await startService(configuration, environment), worker: undefined };
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
function workerArgs({ flags, fallbacks, file }: Sources, { origin }: Configuration): readonly string[] {
  const flagValues = Object.entries({ ...fallbacks, ...flags } as Record<SettingName, unknown>) as [SettingName, unknown][];
  const passed = flagValues.filter(([name]) => name !== "components" && name !== "listen");
  const flagArgs = passed.flatMap(([name, value]) => [flagOf(name), String(value)]);
  return [
    ...process.execArgv,
    process.argv[1] as string,
    "serve",
    ...(file === undefined ? [] : ["--config", file]),
    ...flagArgs,
    ...(origin("listen") === undefined ? [] : [flagOf("listen"), "127.0.0.1:0"]),
    flagOf("components"),
    "worker",
  ];
}

function reloadOnChange({ settings: { tasks = [] } }: Configuration, worker: WorkerProcess | undefined): () => void {
  if (tasks.length === 0) print(`tasks       none yet: say where they are, as in pawl dev ${DEFAULT_TASKS}`);
  // By the names that a watcher has for them.
  const tasksIn = (files: readonly string[]) =>
    moduleDependencies(
      tasks.flatMap((path) => filesOf(path).map((file) => relative("", file))),
      files,
    );
  return watchFolders(tasks.map(folderOf), tasksIn, async (files) => {
    const what = files.length > 3 ? `${files.slice(0, 3).join(", ")} and ${files.length - 3} more` : files.join(", ");
    if (worker === undefined) print(`changed     ${what}; start again to load it: this store serves one process`);
    else print((await worker.replace()) ? `reloaded    ${what}` : `kept        the tasks there were: ${what} does not load`);
  });
}
