import { hostname, userInfo } from "node:os";
import type { JobReference, NewAudit, NewKey, Pawl, ScheduleReference, TargetReference } from "pawl";

/** What is told of an action: to what it is done, and in whose log; names and ids, never inputs. */
export type About = Pick<NewAudit, "subject" | "details" | "tenant">;

type Ref = Exclude<TargetReference, string>;
type Telling = (args: readonly unknown[], pawl: Pawl) => About | undefined | Promise<About>;

const job: Telling = ([of]) => {
  const id = typeof of === "string" ? of : (of as Exclude<JobReference, string>).id;
  return { subject: `job:${id}`, details: { job: id } };
};
const named = (kind: string): Telling => {
  return ([name]) => ({ subject: `${kind}:${name}`, details: { [kind]: String(name) } });
};
const matching: Telling = ([filter]) => ({ details: { ...(filter as Readonly<Record<string, string>> | undefined) } });
const schedule: Telling = ([of]) => {
  const { name, tenant } = (typeof of === "string" ? { name: of } : of) as Exclude<ScheduleReference, string>;
  return { subject: `schedule:${name}`, details: { schedule: name, ...(tenant === undefined ? {} : { tenant }) } };
};
const breaker: Telling = ([of]) => {
  const { tenant, task } = of as { readonly tenant: string; readonly task: string };
  return { subject: `task:${task}`, details: { tenant, task } };
};
const target: Telling = ([of, options]) => {
  const { task, tenant } = typeof of === "string" ? { task: of, tenant: (options as { readonly tenant?: string } | undefined)?.tenant } : (of as Ref);
  return { subject: `target:${task}`, details: { target: task, ...(tenant === undefined ? {} : { tenant }) } };
};
const key: Telling = async ([id], { keys }) => ({ subject: `key:${id}`, tenant: (await keys.get(id as string)).tenant });

/**
 * Everything that somebody may do to a store, by noun and verb, as the API names it. What is not here only reads: a test holds
 * the table against what there is.
 */
export const CONTROL: Readonly<Record<string, Readonly<Record<string, Telling>>>> = {
  jobs: { cancel: job, pause: job, resume: job, retry: job, redrive: job, replay: job, drop: job },
  dead: { redrive: matching, drop: matching },
  queues: { pause: named("queue"), resume: named("queue"), set: named("queue") },
  tasks: { pause: named("task"), resume: named("task"), set: named("task"), define: named("task") },
  tenants: {
    pause: named("tenant"),
    resume: named("tenant"),
    set: named("tenant"),
    purge: named("tenant"),
    askPurge: named("tenant"),
    carryOutPurge: named("purge"),
  },
  encryption: { rotate: named("tenant"), rewrap: () => ({}) },
  breakers: { open: breaker, close: breaker, reset: breaker },
  schedules: {
    put: schedule,
    update: schedule,
    pause: schedule,
    resume: schedule,
    remove: schedule,
    trigger: schedule,
    backfill: (args, pawl) => ((args[1] as { readonly dryRun?: boolean }).dryRun === true ? undefined : schedule(args, pawl)),
  },
  targets: { put: target, rotate: target, remove: target },
  keys: {
    create([given]) {
      const { name, tenant, grants } = given as NewKey;
      return { subject: `name:${name}`, tenant, details: { roles: grants.map(({ role }) => role).join(" ") } };
    },
    rotate: key,
    revoke: key,
  },
};

const beneath = new WeakMap<Pawl, Pawl>();

/**
 * The same store, whose audit log hears what somebody at this machine does to it before it is done: what cannot be told does
 * not happen. A server tells its own.
 */
export function audited(pawl: Pawl): Pawl {
  const heard = wrapped(pawl, (name, value) => {
    const verbs = CONTROL[name];
    return verbs === undefined ? value : wrapped(value as object, (verb, method) => told(`${name}.${verb}`, verbs[verb], method, pawl));
  });
  beneath.set(heard, pawl);
  return heard;
}

/** Tells of one action that is many calls, and answers with the store to make them on. */
export async function oneAction(pawl: Pawl, action: string, about: About): Promise<Pawl> {
  const store = beneath.get(pawl);
  if (store === undefined) return pawl;
  await record(store, action, about);
  return store;
}

function told(action: string, telling: Telling | undefined, method: unknown, pawl: Pawl): unknown {
  if (telling === undefined) return method;
  return async (...args: readonly unknown[]) => {
    const about = await telling(args, pawl);
    if (about !== undefined) await record(pawl, action, about);
    return (method as (...args: readonly unknown[]) => unknown)(...args);
  };
}

async function record(pawl: Pawl, action: string, about: About): Promise<void> {
  await pawl.audit.record({ ...about, actor: `cli:${whoami()}`, action, outcome: "allowed" });
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
function wrapped<T extends object>(inner: T, of: (name: string, value: unknown) => unknown): T {
  const made = new Map<PropertyKey, unknown>();
  return new Proxy(inner, {
    get(target, name) {
      if (made.has(name)) return made.get(name);
      const value: unknown = Reflect.get(target, name, target);
      const bound = typeof value === "function" ? value.bind(target) : value;
      const shown = typeof name === "string" ? of(name, bound) : bound;
      made.set(name, shown);
      return shown;
    },
  });
}
