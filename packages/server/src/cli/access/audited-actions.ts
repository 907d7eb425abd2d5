import { hostname, userInfo } from "node:os";
import type { JobFilter, JobRef, Pawl } from "pawl";
import { type ApiKeyOptions, attachService, type NewAudit, type ScheduleReference, serviceOf, type TargetReference } from "pawl/service";

/** What is told of an action: to what it is done, and in whose log; names and ids, never inputs. */
export type AuditSubject = Pick<NewAudit, "subject" | "details" | "tenant">;

type TargetRef = Exclude<TargetReference, string>;
type DescribeAction = (args: readonly unknown[], pawl: Pawl) => AuditSubject | undefined | Promise<AuditSubject>;

/** A reason, given by itself or among other options. */
function reasonIn(how: unknown): { readonly reason?: string } {
  const reason = typeof how === "object" && how !== null ? (how as { readonly reason?: unknown }).reason : how;
  return typeof reason === "string" ? { reason } : {};
}

const job: DescribeAction = ([of, how]) => {
  const id = typeof of === "string" ? of : (of as Exclude<JobRef, string>).id;
  return { subject: `job:${id}`, details: { job: id, ...reasonIn(how) } };
};
const byName = (kind: string): DescribeAction => {
  return ([name, how]) => ({ subject: `${kind}:${name}`, details: { [kind]: String(name), ...reasonIn(how) } });
};
const byFilter: DescribeAction = ([filter, how]) => ({ details: { ...(filter as Readonly<Record<string, string>> | undefined), ...reasonIn(how) } });
const bulk: DescribeAction = ([verb, filter, how]) => ({
  details: { verb: String(verb), ...auditedFilter(filter as JobFilter), ...reasonIn(how) },
});

/** Instants as texts: an audit entry is JSON. */
function auditedFilter(filter: JobFilter): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(filter).map(([name, value]) => [name, value instanceof Date ? value.toISOString() : String(value)]));
}
const schedule: DescribeAction = ([of]) => {
  const { name, tenant } = (typeof of === "string" ? { name: of } : of) as Exclude<ScheduleReference, string>;
  return { subject: `schedule:${name}`, details: { schedule: name, ...(tenant === undefined ? {} : { tenant }) } };
};
const breaker: DescribeAction = ([of]) => {
  const { tenant, task } = of as { readonly tenant: string; readonly task: string };
  return { subject: `task:${task}`, details: { tenant, task } };
};
const target: DescribeAction = ([of, options]) => {
  const { task, tenant } =
    typeof of === "string" ? { task: of, tenant: (options as { readonly tenant?: string } | undefined)?.tenant } : (of as TargetRef);
  return { subject: `target:${task}`, details: { target: task, ...(tenant === undefined ? {} : { tenant }) } };
};
const key: DescribeAction = async ([id], pawl) => {
  const { tenant } = await serviceOf(pawl).apiKeys.get(id as string);
  return { subject: `key:${id}`, tenant };
};

/**
 * Everything that somebody may do to a store, by noun and verb, as the API names it. What is not here only reads: a test holds
 * the table against what there is.
 */
export const AUDITED_ACTIONS: Readonly<Record<string, Readonly<Record<string, DescribeAction>>>> = {
  jobs: {
    cancel: job,
    pause: job,
    resume: job,
    promote: job,
    redrive: job,
    rerun: job,
    delete: job,
    bulk,
    restore: ([jobs]) => ({ details: { jobs: String((jobs as readonly unknown[]).length) } }),
  },
  dead: { redrive: byFilter, delete: byFilter },
  queues: { pause: byName("queue"), resume: byName("queue"), update: byName("queue") },
  tasks: { pause: byName("task"), resume: byName("task"), update: byName("task"), put: byName("task") },
  tenants: {
    pause: byName("tenant"),
    resume: byName("tenant"),
    update: byName("tenant"),
    purge: byName("tenant"),
  },
  purges: { request: byName("tenant"), carryOut: byName("purge") },
  encryption: { rotate: byName("tenant"), rewrap: () => ({}) },
  breakers: { open: breaker, close: breaker, reset: breaker },
  schedules: {
    put: schedule,
    update: schedule,
    pause: schedule,
    resume: schedule,
    delete: schedule,
    trigger: schedule,
    backfill: (args, pawl) => ((args[1] as { readonly dryRun?: boolean }).dryRun === true ? undefined : schedule(args, pawl)),
  },
  targets: { put: target, rotate: target, delete: target },
  apiKeys: {
    create([options]) {
      const { name, tenant, grants } = options as ApiKeyOptions;
      return { subject: `name:${name}`, tenant, details: { roles: grants.map(({ role }) => role).join(" ") } };
    },
    rotate: key,
    revoke: key,
  },
};

const unauditedPawls = new WeakMap<Pawl, Pawl>();

/**
 * The same store, whose audit log hears what somebody at this machine does to it before it is done: what cannot be told does
 * not happen. A server tells its own.
 */
export function auditActions(pawl: Pawl): Pawl {
  const recording = <T extends object>(nouns: T) =>
    wrapProperties(nouns, (name, value) => {
      const verbs = AUDITED_ACTIONS[name];
      return verbs === undefined
        ? value
        : wrapProperties(value as object, (verb, method) => recordingMethod(`${name}.${verb}`, verbs[verb], method, pawl));
    });
  const auditing = attachService(recording(pawl), recording(serviceOf(pawl)));
  unauditedPawls.set(auditing, pawl);
  return auditing;
}

/** Tells of one action that is many calls, and answers with the store to make them on. */
export async function recordAction(pawl: Pawl, action: string, about: AuditSubject): Promise<Pawl> {
  const store = unauditedPawls.get(pawl);
  if (store === undefined) return pawl;
  await record(store, action, about);
  return store;
}

function recordingMethod(action: string, describe: DescribeAction | undefined, method: unknown, pawl: Pawl): unknown {
  if (describe === undefined) return method;
  return async (...args: readonly unknown[]) => {
    const about = await describe(args, pawl);
    if (about !== undefined) await record(pawl, action, about);
    return (method as (...args: readonly unknown[]) => unknown)(...args);
  };
}

async function record(pawl: Pawl, action: string, about: AuditSubject): Promise<void> {
  await serviceOf(pawl).audit.record({ ...about, actor: `cli:${whoami()}`, action, outcome: "allowed" });
}

/** As people and machines are known to each other; a user without a name, as in many containers, by number. */
function whoami(): string {
  try {
    return `${userInfo().username}@${hostname()}`;
  } catch {
    return `${process.getuid?.() ?? "unknown"}@${hostname()}`;
  }
}

/** The same object, each of whose properties is what `of` makes of it. Its methods know only itself. */
function wrapProperties<T extends object>(inner: T, of: (name: string, value: unknown) => unknown): T {
  const made = new Map<PropertyKey, unknown>();
  return new Proxy(inner, {
    get(target, name) {
      if (made.has(name)) return made.get(name);
      const value: unknown = Reflect.get(target, name, target);
      const bound = typeof value === "function" ? value.bind(target) : value;
      const property = typeof name === "string" ? of(name, bound) : bound;
      made.set(name, property);
      return property;
    },
  });
}
