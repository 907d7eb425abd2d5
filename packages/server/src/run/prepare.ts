import { basename } from "node:path";
import { type AnyTask, isPawlError, type OpenOptions, open } from "pawl";
import { unknownLimitPaths } from "pawl/service";
import { anchorKeyOf } from "../audit/configured-anchors.js";
import { ConfigError, runAllChecks, whereOf } from "../config/problem.js";
import type { Configuration } from "../config/read.js";
import { SETTINGS, type SettingName } from "../config/settings.js";
import { schemaCompiler } from "../json-schema/input-schema.js";
import type { Secrets } from "../secrets/secrets.js";
import { withoutHelp } from "../text/error-message.js";
import { readCertificates } from "../tls/certificates.js";
import { loadTaskFiles } from "./load-tasks.js";
import { certificateFiles } from "./open-listener.js";
import { type StoreToOpen, storeToOpen } from "./open-store.js";
import { type ServiceTracing, tracingOf } from "./tracing.js";

/** What a start has in hand before it begins. */
export interface Prepared {
  readonly tracing: ServiceTracing | undefined;
  readonly target: StoreToOpen;
  /** for `open`, with the tasks of the user's files */
  readonly options: OpenOptions & TaskCode;
  readonly anchorKey: string | undefined;
  /** what is not wrong, but is not what somebody meant, most likely */
  readonly notes: readonly string[];
}

type TaskCode = Required<Pick<OpenOptions, "tasks">> & Pick<OpenOptions, "schedules">;

/** Looks for all that the settings lead to, and begins nothing: what is wrong with any of it is told together. */
export async function prepare(configuration: Configuration, secrets: Secrets): Promise<Prepared> {
  const { settings } = configuration;
  const files = certificateFiles(configuration, secrets);
  const [tracing, code, target, anchorKey] = await runAllChecks(
    // Before the code of tasks, so that what it patches or reads of OpenTelemetry is there.
    () => tracingOf(configuration),
    () => loadCode(configuration),
    () => storeToOpen(configuration, secrets),
    () => anchorKeyOf(configuration, secrets),
    async () => files && readCertificates(files),
    () => tryOpen(configuration, defaultsOf(configuration)),
  );
  const options = {
    ...defaultsOf(configuration),
    ...code,
    // Callers may name tasks that only other workers have, in whatever language.
    allowUnknownTasks: true,
    compileSchema: schemaCompiler(),
    maintenance: settings.components.includes("maintenance"),
    ...(tracing === undefined ? {} : { tracing: tracing.jobs }),
  };
  return { tracing, target, options, anchorKey, notes: code.tasks.flatMap(notesOn) };
}

async function loadCode(configuration: Configuration): Promise<TaskCode> {
  const { settings } = configuration;
  if (settings.tasks === undefined) return { tasks: [] };
  const { tasks, schedules } = await loadTaskFiles(settings.tasks, whereOf(configuration, "tasks"));
  const code = { tasks, ...(schedules.length === 0 ? {} : { schedules }) };
  await tryOpen(configuration, { ...code, allowUnknownTasks: true });
  return code;
}

/** A limit that no job is under would hurt when it is needed. */
function notesOn(task: AnyTask): readonly string[] {
  return unknownLimitPaths(task).map(({ option, reason }) => `${task.name}.${option}: ${reason}; jobs without it are not limited`);
}

function defaultsOf({ settings, queueDefaults }: Configuration): Pick<OpenOptions, "keep" | "queueDefaults"> {
  const { "keep.jobs": finished, "keep.dead": dead, "keep.series": series } = settings;
  return {
    keep: {
      ...(finished === undefined ? {} : { jobs: finished }),
      ...(dead === undefined ? {} : { dead }),
      ...(series === undefined ? {} : { series }),
    },
    ...(queueDefaults === undefined ? {} : { queueDefaults }),
  };
}

/** Opens a store that is forgotten, since the library alone knows what it takes. */
async function tryOpen({ file, origin }: Configuration, options: OpenOptions): Promise<void> {
  try {
    const pawl = await open("memory:", { ...options, maintenance: false });
    await pawl.close();
  } catch (error) {
    if (!isPawlError(error)) throw error;
    const option = String(error.details.option ?? "tasks");
    const inFile = file === undefined ? option : `${basename(file)}: ${option}`;
    const where = Object.hasOwn(SETTINGS, option) ? whereOf({ origin }, option as SettingName) : inFile;
    const what = error.code === "option_invalid" ? String(error.details.reason) : withoutHelp(error);
    throw new ConfigError([{ where, what, help: error.help }]);
  }
}
