import { ENCRYPTED_VALUE, isEncrypted } from "../../core/access/encrypted-value.js";
import type { Failure } from "../../core/jobs/failure.js";
import type { JobId } from "../../core/jobs/id.js";
import type { AttemptRecord, Intent, JobOptions, JobRecord, JobState, LogLevel, LogLine, ParkReason, Priority } from "../../core/jobs/job.js";
import type { OutcomeKind } from "../../core/jobs/outcome.js";
import { withoutFolders } from "../../core/jobs/stack-trace.js";
import { decode } from "../../core/values/json.js";
import type { Scope } from "../../store/port/index.js";

/**
 * A job as people see it: values decoded, times as dates of the store's clock, durations in ms. Its options are those that were
 * asked for this job alone; absent: its task, its queue or the defaults say.
 */
export interface JobView<Out = unknown> extends Omit<JobOptions, "tags" | "atMostOnce"> {
  readonly id: JobId;
  readonly task: string;
  readonly queue: string;
  readonly priority: Priority;
  readonly tenant: string;
  readonly state: JobState;
  /** decoded; the stored text itself if that is impossible, and then `undecodable` is set */
  readonly input: unknown;
  readonly undecodable?: true;
  /** some of it is encrypted, and this process cannot open it: `(encrypted)` stands in its place */
  readonly encrypted?: true;
  /** what it holds is not shown in listings: `(redacted)` stands in its place */
  readonly redacted?: true;
  readonly createdAt: Date;
  readonly dueAt: Date;
  /** when it will run; only while it waits for that */
  readonly nextRunAt?: Date;
  readonly finishedAt?: Date;
  /** attempts spent since it was enqueued or redriven */
  readonly attempts: number;
  /** workers that vanished with it */
  readonly crashes: number;
  readonly output?: Out;
  /** what killed it, or what its last attempt failed with */
  readonly failure?: Failure;
  /** the last one it reported */
  readonly progress?: unknown;
  readonly parkedFor?: ParkReason;
  /** the key of a limit that it waits for */
  readonly limitKey?: { readonly limit: string; readonly key: string };
  readonly waitsFor?: readonly JobId[];
  /** asked of it, and not carried out yet */
  readonly intent?: Intent;
  readonly tags: readonly string[];
  readonly atMostOnce: boolean;
}

export interface AttemptView {
  readonly outcome: OutcomeKind | "redriven";
  readonly worker?: string;
  readonly startedAt: Date;
  readonly finishedAt: Date;
  /** ms */
  readonly duration: number;
  readonly output?: unknown;
  readonly failure?: Failure;
  /** where the job went */
  readonly next: JobState;
}

export interface LogView {
  readonly at: Date;
  readonly level: LogLevel;
  readonly message: string;
  readonly data?: unknown;
}

/** As those of that scope see it. */
export function jobView(record: JobRecord, scope: Scope): JobView {
  const { id, lane, state, options, attempts, crashes, output, failure, progress, parkedFor, limitKey, waitsFor, intent } = record;
  const { tags = [], atMostOnce = false, ...jobOptions } = options;
  const input = tryDecode(record.input);
  return {
    id,
    task: lane.task,
    queue: lane.queue,
    priority: lane.priority,
    tenant: lane.tenant,
    state,
    input: input.value,
    ...(input.ok ? {} : { undecodable: true }),
    ...([record.input, output, progress].some(isEncrypted) ? { encrypted: true } : {}),
    createdAt: new Date(record.createdAt),
    dueAt: new Date(record.dueAt),
    ...(record.runAt === undefined ? {} : { nextRunAt: new Date(record.runAt) }),
    ...(record.finishedAt === undefined ? {} : { finishedAt: new Date(record.finishedAt) }),
    attempts,
    crashes,
    ...(output === undefined ? {} : { output: tryDecode(output).value }),
    ...(failure === undefined ? {} : { failure: failureView(failure, scope) }),
    ...(progress === undefined ? {} : { progress: tryDecode(progress).value }),
    ...(parkedFor === undefined ? {} : { parkedFor }),
    ...(limitKey === undefined ? {} : { limitKey }),
    ...(waitsFor === undefined ? {} : { waitsFor }),
    ...(intent === undefined ? {} : { intent }),
    tags,
    atMostOnce,
    ...jobOptions,
  };
}

export function attemptView(record: AttemptRecord, scope: Scope): AttemptView {
  const { outcome, worker, output, failure, next } = record;
  return {
    outcome,
    ...(worker === undefined ? {} : { worker }),
    startedAt: new Date(record.startedAt),
    finishedAt: new Date(record.finishedAt),
    duration: Math.max(0, record.finishedAt - record.startedAt),
    ...(output === undefined ? {} : { output: tryDecode(output).value }),
    ...(failure === undefined ? {} : { failure: failureView(failure, scope) }),
    next,
  };
}

export function logView(line: LogLine): LogView {
  const { at, level, message, data } = line;
  return {
    at: new Date(at),
    level,
    message: isEncrypted(message) ? ENCRYPTED_VALUE : message,
    ...(data === undefined ? {} : { data: tryDecode(data).value }),
  };
}

/** Who sees all tenants runs the service, and may know where its code is. */
export function failureView(failure: Failure, scope: Scope): Failure {
  if (isEncrypted(failure.message)) return { ...failure, message: ENCRYPTED_VALUE };
  return scope === "everyone" ? failure : withoutFolders(failure);
}

/** A row that cannot be read must still be listed: it is the one people look for. */
function tryDecode(text: string): { readonly ok: boolean; readonly value: unknown } {
  if (isEncrypted(text)) return { ok: true, value: ENCRYPTED_VALUE };
  try {
    return { ok: true, value: decode(text) };
  } catch {
    return { ok: false, value: text };
  }
}
