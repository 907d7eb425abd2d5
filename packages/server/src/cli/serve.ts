import type { Command } from "commander";
import { milliseconds, type Pawl } from "pawl";
import { type Configuration, readConfiguration, type Sources } from "../config/read.js";
import { printLines } from "../live/lines.js";
import { durabilityOf, engineName } from "../live/words.js";
import { type Service, startService, type World } from "../serve/service.js";
import { logTo } from "../telemetry/log.js";
import { configured } from "./configured.js";
import { hurry, lastWord } from "./ending.js";
import { EXIT } from "./exit.js";
import type { Act } from "./session.js";
import { sourcesOf, withSettings } from "./settings.js";
import { untilStopped } from "./stop.js";

export function build(command: Command, act: Act): void {
  withSettings(command);
  act(command, () => configured(() => serve(sourcesOf(command))));
}

/** `pawl serve`: the service, or the part of it that `--roles` names, until it is asked to stop. */
async function serve(sources: Sources): Promise<void> {
  const configuration = await readConfiguration(sources);
  const { settings } = configuration;
  const { follow, ...voice } = voiceOf(configuration);
  const { say } = voice;
  let service: Service | undefined;
  const stopped = untilStopped(() => service?.kill());
  const started = await Promise.race([startService(configuration, { env: sources.env, ...voice }), stopped]);
  if (started === undefined) {
    say("stopped     before there was a store");
    process.exit();
  }
  service = started;
  if (!isPart()) await greet(service, configuration, say);
  const hush = follow(service.pawl);
  process.send?.("ready");
  const stuck = isStuck(service.pawl);
  const why = await Promise.race([stopped, abandoned(), stuck]);
  if (why !== "stuck") say("stopping    finishing what runs; a second signal exits at once");
  else
    say(`stuck       its handlers do not end: finishing what runs, then exiting with ${EXIT.stuck}, to be replaced`, "error", {
      code: "worker_stuck",
    });
  const relax = hurry(milliseconds(settings["shutdown.delay"]) + milliseconds(settings["shutdown.drain"]), say);
  await service.stop();
  hush();
  if (why === "stuck") process.exit(EXIT.stuck);
  lastWord(await service.pawl.unended(), say);
  relax();
  // Or the line to whoever started this would keep the process.
  if (process.connected) process.disconnect();
}

/** Nothing but another process helps a worker whose handlers do not end. */
function isStuck(pawl: Pawl): Promise<"stuck"> {
  return new Promise((resolve) => void pawl.on("worker.stuck", () => resolve("stuck")));
}

/** Whether this is a part of `pawl dev`, which hears when it is there, speaks for it, and takes it along when it goes. */
function isPart(): boolean {
  return process.send !== undefined;
}

interface Voice extends Omit<World, "env"> {
  /** tells what happens, until the answer is called */
  follow(pawl: Pawl): () => void;
}

/** Lines for people at a terminal, JSON for machines elsewhere, unless the settings say otherwise. */
function voiceOf({ settings }: Configuration): Voice {
  if (isPart()) return { say: (line, level) => (level === "error" ? print(line) : undefined), follow: (pawl) => printLines(pawl, print) };
  const format = settings["log.format"] ?? (process.stdout.isTTY ? "lines" : "json");
  const log = logTo({ level: settings["log.level"], format });
  // Whatever ends the process. The lines of its last moment are those that say why.
  process.once("exit", log.flush);
  return {
    // The words stand in a column for people; a machine needs no blanks.
    say(line, level = "info", fields) {
      if (format !== "lines" || level === "error") return log[level](line.replace(/ {2,}/, ": "), fields);
      log.flush();
      print(line);
    },
    onRequest: log.request,
    follow: (pawl) => log.follow(pawl),
  };
}

/** Resolves when the process that started this one, and keeps a line to it, has gone. */
function abandoned(): Promise<void> {
  return new Promise((resolve) => {
    if (process.connected) process.once("disconnect", () => resolve());
  });
}

export async function greet({ pawl }: Pick<Service, "pawl">, { settings, file }: Configuration, say: (line: string) => void): Promise<void> {
  const info = await pawl.info();
  const tasks = info.tasks.filter((name) => !name.startsWith("pawl."));
  if (file !== undefined) say(`config      ${file}`);
  say(`store       ${info.place}`);
  say(`engine      ${engineName(info)}`);
  say(`durability  ${durabilityOf(info)}`);
  if (tasks.length > 0) say(`tasks       ${tasks.join(", ")}`);
  say(`roles       ${settings.roles.join(", ")}`);
}

export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
