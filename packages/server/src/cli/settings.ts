import { type Command, Option } from "commander";
import type { Sources } from "../config/read.js";
import { flagOf, SETTING_NAMES, SETTINGS, type SettingName } from "../config/settings.js";

/** The program itself has these. */
const GLOBAL_SETTINGS: ReadonlySet<SettingName> = new Set(["store.url"]);

/** Gives a command the flags of all settings, from the one table of them. */
export function withSettings(command: Command): Command {
  for (const name of SETTING_NAMES) if (!GLOBAL_SETTINGS.has(name)) command.addOption(optionOf(name));
  return command;
}

/** What was said on the command line and in the environment, before anything of it is believed. */
export function sourcesOf(command: Command): Sources {
  const options = command.optsWithGlobals<Record<string, unknown>>();
  const flags = Object.fromEntries(
    SETTING_NAMES.flatMap((name) => {
      const value = options[optionOf(name).attributeName()];
      return value === undefined ? [] : [[name, value]];
    }),
  );
  const { config } = options;
  return { flags, env: process.env, folder: process.cwd(), ...(typeof config === "string" ? { file: config } : {}) };
}

function optionOf(name: SettingName): Option {
  return new Option(`${flagOf(name)} <${SETTINGS[name].kind.word}>`, SETTINGS[name].what);
}
