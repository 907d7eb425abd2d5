import type { ErrorCode } from "./error.js";

/**
 * How large or how many may be what callers, handlers and workers give to be stored: every bound, in this one table, which
 * `docs/bounds.md` publishes. The bounds hold in every way to the store: in this process, over HTTP and in the worker protocol.
 *
 * A row: [the bound, its unit, what it bounds, what becomes of more]. What becomes of more is the code of the error that refuses
 * it, or "cut" (the text is shortened and says how much is missing), "dropped" (it is left out, and somebody is told how
 * many were), or "split" (it is sent in several parts).
 */
const table = {
  // jobs
  input: [1_048_576, "bytes", "the encoded input of a job, a schedule or a redrive", "input_too_large"],
  output: [1_048_576, "bytes", "the encoded output of a job; the attempt fails with the kind of this name", "output_unencodable"],
  recorded: [1_048_576, "bytes", "the encoded value that one `ctx.once` records", "output_unencodable"],
  progress: [65_536, "bytes", "the encoded value of `ctx.progress`", "progress_too_large"],
  tags: [20, "items", "tags of a job; capabilities that a task needs or a worker has", "option_invalid"],
  resources: [20, "items", "resources that a task needs or a worker has", "option_invalid"],
  dependencies: [1_000, "items", "jobs that one job depends on", "option_invalid"],
  limits: [8, "items", "limits that one job is under", "option_invalid"],
  retryDelays: [100, "items", "delays in a list of retries", "option_invalid"],
  tracestate: [512, "characters", "`tracestate` of a trace context", "option_invalid"],
  // log lines
  logMessage: [4_000, "characters", "the message of a log line", "cut"],
  logData: [16_384, "bytes", "the encoded data of a log line; what is cut becomes a text", "cut"],
  logLines: [1_000, "items", "log lines of one attempt; a last line says how many were dropped", "dropped"],
  logBytes: [4_194_304, "bytes", "messages and data of all log lines of one attempt; a last line says how many were dropped", "dropped"],
  waitingLines: [20_000, "items", "log lines that a worker keeps while the store takes none; the oldest go", "dropped"],
  waitingBytes: [67_108_864, "bytes", "messages and data of those", "dropped"],
  // failures and reasons
  failureMessage: [4_000, "characters", "the message of an error, and of each of its causes", "cut"],
  failureStack: [16_000, "characters", "the stack of an error, and of each of its causes", "cut"],
  failureName: [200, "characters", "the class of an error", "cut"],
  failureCode: [128, "characters", "the code of an error", "cut"],
  failureCauses: [4, "items", "causes of an error", "dropped"],
  reason: [1_000, "characters", "the reason given to a cancel", "cut"],
  // tasks, schedules, targets
  inputSchema: [65_536, "characters", "the JSON Schema of a task's input", "option_invalid"],
  cron: [200, "characters", "a cron expression", "cron_invalid"],
  targetUrl: [2_048, "characters", "the URL of a target", "option_invalid"],
  // access
  grants: [16, "items", "grants of an API key", "option_invalid"],
  patterns: [32, "items", "patterns of tasks or queues in one grant", "option_invalid"],
  auditText: [512, "characters", "a text of an audit entry", "cut"],
  auditDetails: [32, "items", "details of an audit entry", "option_invalid"],
  // one call to the store
  enqueueAll: [1_000, "items", "jobs that one statement stores; a batch of more is `option_invalid`", "split"],
  statement: [16_777_216, "characters", "inputs, outputs, failures and log lines that one statement carries", "split"],
} as const satisfies Record<string, readonly [most: number, unit: Unit, what: string, beyond: ErrorCode | "cut" | "dropped" | "split"]>;

type Unit = "bytes" | "characters" | "items";
type Bounds = { readonly [Name in keyof typeof table]: (typeof table)[Name][0] };

export const BOUNDS = Object.fromEntries(Object.entries(table).map(([name, [most]]) => [name, most])) as Bounds;

/** How long a name of each kind may be, in characters: long enough for people, short enough for an index. Longer ones are `name_invalid`. */
export const LONGEST_NAMES = {
  queue: 128,
  task: 128,
  tenant: 128,
  key: 512,
  tag: 128,
  capability: 128,
  resource: 128,
  "idempotency key": 256,
  "worker name": 128,
  schedule: 128,
  limit: 128,
  "limit key": 256,
  "API key": 128,
} as const;

/** With what each is and what becomes of more, for the docs. */
export const BOUNDS_TABLE: Readonly<Record<string, readonly [most: number, unit: Unit, what: string, beyond: string]>> = table;
