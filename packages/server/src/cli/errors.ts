import type { ErrorCode } from "pawl";
import { messageOf, withoutHelp } from "../errors/message-of.js";
import { CliError, EXIT, type ExitCode } from "./exit.js";

/** An error as every command tells it. */
export interface Told {
  readonly exit: ExitCode;
  readonly code: string;
  readonly message: string;
  readonly help?: string;
}

const UNKNOWN: ReadonlySet<ErrorCode> = new Set<ErrorCode>(["job_unknown", "schedule_unknown", "api_key_unknown"]);
const USAGE: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "option_invalid",
  "duration_invalid",
  "name_invalid",
  "zone_unknown",
  "cron_invalid",
  "input_invalid",
  "store_url",
]);

/** What to do on this command line, where the library's advice is for code. */
const HELP: { readonly [Code in ErrorCode]?: string | ((details: Readonly<Record<string, unknown>>) => string) } = {
  schema_missing: "run pawl migrate",
  store_url: 'give --store or PAWL_STORE as "./folder", "postgres://…" or "https://…"',
  job_unknown: "pawl jobs list shows what there is; finished jobs go when their retention ends",
  schedule_unknown: "pawl schedules list shows what there is; give --tenant for one of another tenant",
  job_state: ({ job = "ID" }) => `pawl jobs show ${job} tells what can be done with it`,
  encryption_missing: "set PAWL_ENCRYPTION_KEYS, or encryption.keys in the configuration",
  master_key_missing: "add them to encryption.keys, after the newest one",
  unauthenticated: "put a live key of that service into PAWL_KEY",
  pepper_missing: "set PAWL_KEYS_PEPPER, or keys.pepper in the configuration",
  option_invalid: "see --help of the command",
};

/** Anything that can be thrown, in one shape. By its name, so that the library is not loaded to tell of a typing error. */
export function tell(error: unknown): Told {
  if (error instanceof CliError) {
    const { exit, code, message, help } = error;
    return { exit, code, message, ...(help === undefined ? {} : { help }) };
  }
  if (isCoded(error)) {
    const exit = UNKNOWN.has(error.code) ? EXIT.unknown : USAGE.has(error.code) ? EXIT.usage : EXIT.failed;
    const found = HELP[error.code];
    const own = typeof found === "function" ? found(error.details ?? {}) : found;
    return { exit, code: error.code, message: own === undefined ? error.message : withoutHelp(error), ...(own === undefined ? {} : { help: own }) };
  }
  if (error instanceof Error && error.name === "ConfigError")
    return { exit: EXIT.config, code: "config", message: error.message, help: "run pawl check" };
  if (error instanceof Error && error.name === "AbortError") return { exit: EXIT.interrupted, code: "interrupted", message: "stopped" };
  return { exit: EXIT.failed, code: "failed", message: messageOf(error) };
}

interface Coded extends Error {
  readonly code: ErrorCode;
  readonly help: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

function isCoded(error: unknown): error is Coded {
  return error instanceof Error && error.name === "PawlError" && "code" in error && "help" in error;
}
