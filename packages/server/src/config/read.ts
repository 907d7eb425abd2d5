import { basename } from "node:path";
import type { QueueDefaults } from "pawl/service";
import type { Environment } from "../secrets/secret.js";
import { checkCombinations } from "./check-combinations.js";
import { type ConfigFile, loadConfigFile } from "./file.js";
import { didYouMean, InvalidSetting } from "./kinds.js";
import { ConfigError, type Problem } from "./problem.js";
import { DEFAULT_STORE, flagOf, SETTING_DEFAULTS, SETTING_NAMES, SETTINGS, type SettingName, type Settings, variableOf } from "./settings.js";

/** Where settings may come from. A flag comes before the environment, that before the file, that before the defaults. */
export interface Sources {
  /** by the names of settings; those that were not given are left out */
  readonly flags: { readonly [N in SettingName]?: unknown };
  /** what holds in place of a default */
  readonly fallbacks?: Sources["flags"];
  readonly env: Environment;
  /** the folder the process was started in */
  readonly folder: string;
  /** the configuration file, if it is named */
  readonly file?: string;
}

export interface Configuration {
  readonly settings: Settings;
  /** who said it: a flag, a variable or a place in the file; undefined: a default */
  origin(name: SettingName): string | undefined;
  readonly queueDefaults?: Readonly<Record<string, QueueDefaults>>;
  /** the configuration file, if there is one */
  readonly file?: string;
}

/** One value that somebody gave. */
interface RawSetting {
  readonly where: string;
  readonly by: "flag" | "environment" | "file";
  readonly value: unknown;
  readonly folder: string;
}

/** Reads everything there is, and either believes all of it or says in one line each what is wrong. */
export async function readConfiguration(sources: Sources): Promise<Configuration> {
  const { env, folder } = sources;
  const problems: Problem[] = [];
  const loaded = await loadConfigFile(folder, sources.file ?? env.PAWL_CONFIG);
  if ("problem" in loaded) problems.push(loaded.problem);
  const file = "file" in loaded ? loaded.file : undefined;
  const { values: fromFile, queueDefaults } = file === undefined ? { values: new Map<SettingName, RawSetting>() } : settingsInFile(file, problems);
  const settings: Partial<Record<SettingName, unknown>> = { ...SETTING_DEFAULTS, "store.url": SETTINGS["store.url"].kind.of(DEFAULT_STORE, folder) };
  const origins = new Map<SettingName, RawSetting>();
  const invalid = new Set<SettingName>();
  for (const name of SETTING_NAMES) {
    const raw = flagSetting(name, sources) ?? variableSetting(name, sources) ?? fromFile.get(name) ?? fallbackSetting(name, sources);
    if (raw === undefined) continue;
    origins.set(name, raw);
    try {
      settings[name] = SETTINGS[name].kind.of(raw.value, raw.folder);
    } catch (error) {
      if (!(error instanceof InvalidSetting)) throw error;
      invalid.add(name);
      problems.push({ where: raw.where, what: error.what, help: error.help });
    }
  }
  problems.push(...unknownVariables(env));
  const origin = (name: SettingName) => origins.get(name)?.where;
  // Of a file that could not be read nobody knows what it would have said.
  if (!("problem" in loaded))
    problems.push(...checkCombinations(settings as Settings, { origin, by: (name) => origins.get(name)?.by, env }, invalid));
  if (problems.length > 0) throw new ConfigError(problems);
  return {
    settings: settings as Settings,
    origin,
    ...(queueDefaults === undefined ? {} : { queueDefaults }),
    ...(file === undefined ? {} : { file: file.path }),
  };
}

function flagSetting(name: SettingName, { flags, folder }: Sources): RawSetting | undefined {
  const value = flags[name];
  return value === undefined ? undefined : { where: flagOf(name), by: "flag", value, folder };
}

function fallbackSetting(name: SettingName, { fallbacks, folder }: Sources): RawSetting | undefined {
  const value = fallbacks?.[name];
  return value === undefined ? undefined : { where: name, by: "file", value, folder };
}

function variableSetting(name: SettingName, { env, folder }: Sources): RawSetting | undefined {
  const variable = variableOf(name);
  const value = env[variable];
  // As Docker and Kubernetes leave it when there is nothing to say.
  return value === undefined || value === "" ? undefined : { where: variable, by: "environment", value, folder };
}

const GROUPS = new Set(SETTING_NAMES.filter((name) => name.includes(".")).map((name) => name.split(".")[0] as string));
const TOP_LEVEL_NAMES = [...new Set(SETTING_NAMES.map((name) => name.split(".")[0] as string)), "queueDefaults"];

/** Takes the file apart into the settings it holds. */
function settingsInFile(
  file: ConfigFile,
  problems: Problem[],
): { values: Map<SettingName, RawSetting>; queueDefaults?: Readonly<Record<string, QueueDefaults>> } {
  const values = new Map<SettingName, RawSetting>();
  const at = (setting: string) => `${basename(file.path)}: ${setting}`;
  if (!isObject(file.value)) {
    problems.push({ where: basename(file.path), what: "its default export is no object", help: "export default defineConfig({ … })" });
    return { values };
  }
  const addSetting = (name: string, value: unknown, names: readonly string[]) => {
    if (value === undefined) return;
    if (Object.hasOwn(SETTINGS, name)) values.set(name as SettingName, { where: at(name), by: "file", value, folder: file.folder });
    else problems.push({ where: at(name), what: "there is no such setting", help: didYouMean(name, names) ?? `there are ${names.join(", ")}` });
  };
  const { queueDefaults, ...rest } = file.value;
  if (queueDefaults !== undefined && !isObject(queueDefaults))
    problems.push({ where: at("queueDefaults"), what: "it is no object", help: "write defaults by queue" });
  for (const [top, value] of Object.entries(rest)) {
    if (top === "store" && typeof value === "string") addSetting("store.url", value, TOP_LEVEL_NAMES);
    else if (!GROUPS.has(top)) addSetting(top, value, TOP_LEVEL_NAMES);
    else if (!isObject(value))
      problems.push({ where: at(top), what: "it is no object", help: `write its settings inside: ${inside(top).join(", ")}` });
    else for (const [name, inner] of Object.entries(value)) addSetting(`${top}.${name}`, inner, inside(top));
  }
  return { values, ...(queueDefaults === undefined ? {} : { queueDefaults: queueDefaults as Readonly<Record<string, QueueDefaults>> }) };
}

function inside(group: string): readonly string[] {
  return SETTING_NAMES.filter((name) => name.startsWith(`${group}.`));
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What Kubernetes tells every container of a service that is called pawl, or pawl-something. */
const KUBERNETES_VARIABLE = /^PAWL_(.*_)?(SERVICE_(HOST|PORT)(_.*)?|PORT(_\d+_.*)?)$/;
/** Of the configuration itself, and of the commands and workers that talk to a service. */
const OTHER_VARIABLES = new Set(["PAWL_CONFIG", "PAWL_API_KEY", "PAWL_URL"]);

/** A misspelt variable would silently do nothing. Those that hold a secret may have any name. */
function unknownVariables(env: Environment): readonly Problem[] {
  const variables = SETTING_NAMES.map(variableOf);
  const referred = new Set(Object.values(env).flatMap((value) => /^env:(\w+)$/.exec(value ?? "")?.[1] ?? []));
  return Object.keys(env)
    .filter(
      (name) =>
        name.startsWith("PAWL_") && !variables.includes(name) && !OTHER_VARIABLES.has(name) && !referred.has(name) && !KUBERNETES_VARIABLE.test(name),
    )
    .map((where) => ({ where, what: "there is no such setting", help: didYouMean(where, variables) ?? "see docs/service.md, or unset it" }));
}
