import type { Command } from "commander";
import type { Pawl } from "pawl";
import { milliseconds, serviceOf } from "pawl/service";
import { type Configuration, readConfiguration, type Sources } from "../../config/read.js";
import { type Service, type ServiceEnvironment, startService } from "../../run/service.js";
import { logTo } from "../../telemetry/logs/log.js";
import { printActivity } from "../../terminal/print-activity.js";
import { durabilityOf, engineName } from "../../terminal/store-phrases.js";
import { forceExitAfter, reportStopped } from "../end-process.js";
import { EXIT } from "../exit.js";
import type { Act } from "../session.js";
import { sourcesOf, withSettings } from "../settings.js";
import { untilStopped } from "../stop-signals.js";
import { withConfiguration } from "./with-configuration.js";

export function build(command: Command, act: Act): void {
  withSettings(command);
  act(command, () => withConfiguration(() => serve(sourcesOf(command))));
}

/** `pawl serve`: the service, or the part of it that `--components` names, until it is asked to stop. */
async function serve(sources: Sources): Promise<void> {
  const configuration = await readConfiguration(sources);
  const { settings } = configuration;
  const { follow, ...output } = serviceOutput(configuration);
  const { writeLine } = output;
  let service: Service | undefined;
  const stopped = untilStopped(() => service?.kill());
  const started = await Promise.race([startService(configuration, { env: sources.env, ...output }), stopped]);
  if (started === undefined) {
    writeLine("stopped     before there was a store");
    process.exit();
  }
  service = started;
  if (!isDevWorker()) await printServiceInfo(service, configuration, writeLine);
  const stopFollowing = follow(service.pawl);
  process.send?.("ready");
  const stuck = isStuck(service.pawl);
  const stopReason = await Promise.race([stopped, untilParentExits(), stuck]);
  if (stopReason !== "stuck") writeLine("stopping    finishing what runs; a second signal exits at once");
  else
    writeLine(`stuck       its handlers do not end: finishing what runs, then exiting with ${EXIT.stuck}, to be replaced`, "error", {
      code: "worker_stuck",
    });
  const cancelForcedExit = forceExitAfter(milliseconds(settings["shutdown.delay"]) + milliseconds(settings["shutdown.grace"]), writeLine);
  await service.stop();
  stopFollowing();
  if (stopReason === "stuck") process.exit(EXIT.stuck);
  reportStopped(await serviceOf(service.pawl).unended(), writeLine);
  cancelForcedExit();
  // Or the line to whoever started this would keep the process.
  if (process.connected) process.disconnect();
}

/** Nothing but another process helps a worker whose handlers do not end. */
function isStuck(pawl: Pawl): Promise<"stuck"> {
  return new Promise((resolve) => void pawl.on("worker.stuck", () => resolve("stuck")));
}

/** Whether this is a part of `pawl dev`, which hears when it is there, speaks for it, and takes it along when it goes. */
function isDevWorker(): boolean {
  return process.send !== undefined;
}

interface ServiceOutput extends Omit<ServiceEnvironment, "env"> {
  /** tells what happens, until the answer is called */
  follow(pawl: Pawl): () => void;
}

/** Lines for people at a terminal, JSON for machines elsewhere, unless the settings say otherwise. */
function serviceOutput({ settings }: Configuration): ServiceOutput {
  if (isDevWorker())
    return { writeLine: (line, level) => (level === "error" ? print(line) : undefined), follow: (pawl) => printActivity(pawl, print) };
  const format = settings["log.format"] ?? (process.stdout.isTTY ? "lines" : "json");
  const log = logTo({ level: settings["log.level"], format });
  // Whatever ends the process. The lines of its last moment are those that say why.
  process.once("exit", log.flush);
  return {
    // The words stand in a column for people; a machine needs no blanks.
    writeLine(line, level = "info", fields) {
      if (format !== "lines" || level === "error") return log[level](line.replace(/ {2,}/, ": "), fields);
      log.flush();
      print(line);
    },
    onRequest: log.request,
    follow: (pawl) => log.follow(pawl),
  };
}

/** Resolves when the process that started this one, and keeps a line to it, has gone. */
function untilParentExits(): Promise<void> {
  return new Promise((resolve) => {
    if (process.connected) process.once("disconnect", () => resolve());
  });
}

export async function printServiceInfo(
  { pawl }: Pick<Service, "pawl">,
  { settings, file }: Configuration,
  writeLine: (line: string) => void,
): Promise<void> {
  const info = await pawl.info();
  const tasks = info.tasks.filter((name) => !name.startsWith("pawl."));
  if (file !== undefined) writeLine(`config      ${file}`);
  writeLine(`store       ${info.place}`);
  writeLine(`engine      ${engineName(info)}`);
  writeLine(`durability  ${durabilityOf(info)}`);
  if (tasks.length > 0) writeLine(`tasks       ${tasks.join(", ")}`);
  writeLine(`components  ${settings.components.join(", ")}`);
}

export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
