import type { ErrorCode } from "pawl";
import { messageOf, withoutHelp } from "../text/error-message.js";
import { CliError, EXIT, type ExitCode } from "./exit.js";

/** An error as every command tells it. */
export interface ErrorReport {
  readonly exit: ExitCode;
  readonly code: string;
  readonly message: string;
  readonly help?: string;
}

const UNKNOWN_CODES: ReadonlySet<ErrorCode> = new Set<ErrorCode>(["job_unknown", "schedule_unknown", "api_key_unknown"]);
const USAGE_CODES: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "option_invalid",
  "duration_invalid",
  "name_invalid",
  "time_zone_unknown",
  "cron_invalid",
  "input_invalid",
  "store_url_invalid",
]);

/** What to do on this command line, where the library's advice is for code. */
const HELP_BY_CODE: { readonly [Code in ErrorCode]?: string | ((details: Readonly<Record<string, unknown>>) => string) } = {
  schema_missing: "run pawl migrate",
  store_url_invalid: 'give --store or PAWL_STORE as "./folder", "postgres://…" or "https://…"',
  job_unknown: "pawl jobs list shows what there is; finished jobs go when their retention ends",
  schedule_unknown: "pawl schedules list shows what there is; give --tenant for one of another tenant",
  job_state_conflict: ({ job = "ID" }) => `pawl jobs show ${job} tells what can be done with it`,
  encryption_missing: "set PAWL_ENCRYPTION_MASTER_KEYS, or encryption.masterKeys in the configuration",
  master_key_missing: "add them to encryption.masterKeys, after the newest one",
  unauthenticated: "put a live key of that service into PAWL_API_KEY",
  pepper_missing: "set PAWL_API_KEYS_PEPPER, or apiKeys.pepper in the configuration",
  option_invalid: "see --help of the command",
};

/** Anything that can be thrown, in one shape. By its name, so that the library is not loaded to tell of a typing error. */
export function describeError(error: unknown): ErrorReport {
  if (error instanceof CliError) {
    const { exit, code, message, help } = error;
    return { exit, code, message, ...(help === undefined ? {} : { help }) };
  }
  if (isCodedError(error)) {
    const exit = UNKNOWN_CODES.has(error.code) ? EXIT.unknown : USAGE_CODES.has(error.code) ? EXIT.usage : EXIT.failed;
    const found = HELP_BY_CODE[error.code];
    const own = typeof found === "function" ? found(error.details ?? {}) : found;
    return { exit, code: error.code, message: own === undefined ? error.message : withoutHelp(error), ...(own === undefined ? {} : { help: own }) };
  }
  if (error instanceof Error && error.name === "ConfigError")
    return { exit: EXIT.config, code: "config", message: error.message, help: "run pawl check" };
  if (error instanceof Error && error.name === "AbortError") return { exit: EXIT.interrupted, code: "interrupted", message: "stopped" };
  return { exit: EXIT.failed, code: "failed", message: messageOf(error) };
}

interface CodedError extends Error {
  readonly code: ErrorCode;
  readonly help: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

function isCodedError(error: unknown): error is CodedError {
  return error instanceof Error && error.name === "PawlError" && "code" in error && "help" in error;
}
