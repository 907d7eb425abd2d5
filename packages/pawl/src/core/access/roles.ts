import { BOUNDS } from "../values/bounds.js";
import { checkArray, checkKeys, checkObject, checkOneOf, invalid, show } from "../values/option.js";
import { checkPattern, EVERYTHING, isEverything, matches } from "./name-pattern.js";

/**
 * Who may do what: roles × actions × patterns of tasks and queues, as one table. What is not in it is denied.
 */
export const ROLES = ["admin", "operator", "producer", "worker", "viewer"] as const;
export type Role = (typeof ROLES)[number];

interface AccessRule {
  readonly roles: readonly Role[];
  /** it reaches beyond one tenant, so it takes an identity that is not bound to one */
  readonly whole?: true;
  /** it is about no task and no queue, so patterns are not looked at */
  readonly laneless?: true;
  /** the audit log tells who did it; of the others, who was denied them */
  readonly audited?: true;
}

const PEOPLE = ["admin", "operator", "viewer"] as const;
const OPERATORS = ["admin", "operator"] as const;
const PRODUCERS = ["admin", "operator", "producer"] as const;
const CALLERS = ["admin", "operator", "producer", "viewer"] as const;

const table = {
  "jobs.read": { roles: CALLERS },
  /** enqueue */
  "jobs.write": { roles: PRODUCERS },
  /** cancel, pause, resume, retry, redrive, replay, drop; one, or all that match a filter */
  "jobs.control": { roles: OPERATORS, audited: true },
  "jobs.export": { roles: ["admin"], audited: true },
  "schedules.read": { roles: CALLERS },
  "schedules.write": { roles: OPERATORS, audited: true },
  "queues.read": { roles: PEOPLE },
  "queues.write": { roles: OPERATORS, whole: true, audited: true },
  /** with the schema of its input, which whoever enqueues or runs it needs */
  "tasks.read": { roles: ROLES },
  "tasks.write": { roles: OPERATORS, whole: true, audited: true },
  "tenants.read": { roles: PEOPLE },
  "tenants.write": { roles: ["admin"], whole: true, audited: true },
  "tenants.purge": { roles: ["admin"], whole: true, audited: true },
  "workers.read": { roles: PEOPLE, whole: true },
  "breakers.read": { roles: PEOPLE },
  "breakers.write": { roles: OPERATORS, audited: true },
  "limits.read": { roles: PEOPLE },
  "events.read": { roles: PEOPLE },
  "info.read": { roles: ROLES, laneless: true },
  /** the pull protocol: claim, renew, settle, log */
  "leases.write": { roles: ["admin", "worker"] },
  /** where jobs are pushed to */
  "targets.read": { roles: OPERATORS },
  "targets.write": { roles: ["admin"], audited: true },
  "apiKeys.read": { roles: ["admin"] },
  "apiKeys.write": { roles: ["admin"], audited: true },
  "audit.read": { roles: ["admin"] },
} as const satisfies Record<string, AccessRule>;

export type Action = keyof typeof table;
export const ACTIONS = Object.keys(table) as readonly Action[];
export const ACCESS: Readonly<Record<Action, AccessRule>> = table;

/** A role, for the tasks and queues that match. */
export interface Grant {
  readonly role: Role;
  /** patterns with `*`; left out: all */
  readonly tasks?: readonly string[];
  readonly queues?: readonly string[];
}

/** Who asks, as told by a credential. */
export interface Identity {
  /** undefined: it is not bound to a tenant, and acts for the whole store */
  readonly tenant: string | undefined;
  readonly grants: readonly Grant[];
}

/** What is asked for. A task or queue that is not named stands for all of them. */
export interface Subject {
  readonly tenant?: string;
  readonly task?: string;
  readonly queue?: string;
}

export type Permission = { readonly allowed: true } | { readonly allowed: false; readonly why: "tenant" | "role" | "task" | "queue" };

const ALLOWED: Permission = { allowed: true };

export function permit({ tenant, grants }: Identity, action: Action, on: Subject = {}): Permission {
  const rule: AccessRule | undefined = Object.hasOwn(table, action) ? table[action] : undefined;
  if (tenant !== undefined && (rule?.whole === true || (on.tenant ?? tenant) !== tenant)) return { allowed: false, why: "tenant" };
  const fitting = grants.filter(({ role }) => rule?.roles.includes(role));
  if (fitting.length === 0) return { allowed: false, why: "role" };
  if (rule?.laneless) return ALLOWED;
  const forTask = fitting.filter(({ tasks }) => covers(tasks, on.task));
  if (forTask.length === 0) return { allowed: false, why: "task" };
  return forTask.some(({ queues }) => covers(queues, on.queue)) ? ALLOWED : { allowed: false, why: "queue" };
}

function covers(patterns: readonly string[] = EVERYTHING, name: string | undefined): boolean {
  return patterns.some((pattern) => (name === undefined ? isEverything(pattern) : matches(pattern, name)));
}

const GRANT_KEYS = new Set(["role", "tasks", "queues"]);

export function checkGrants(option: string, value: unknown): readonly Grant[] {
  const grants = checkArray(option, value);
  if (grants.length === 0 || grants.length > BOUNDS.grants) throw invalid(option, `there must be 1 to ${BOUNDS.grants} of them`);
  return grants.map((grant, index) => checkGrant(`${option}[${index}]`, grant));
}

function checkGrant(option: string, value: unknown): Grant {
  const grant = checkObject(option, value) as { role?: unknown; tasks?: unknown; queues?: unknown };
  checkKeys(grant, GRANT_KEYS, `${option}.`);
  const { tasks, queues } = grant;
  return {
    role: checkOneOf(`${option}.role`, grant.role, ROLES),
    ...(tasks === undefined ? {} : { tasks: checkPatterns(`${option}.tasks`, tasks) }),
    ...(queues === undefined ? {} : { queues: checkPatterns(`${option}.queues`, queues) }),
  };
}

function checkPatterns(option: string, value: unknown): readonly string[] {
  const patterns = checkArray(option, value);
  // An empty list would read as "none" to some and as "all" to others.
  if (patterns.length === 0 || patterns.length > BOUNDS.patterns)
    throw invalid(option, `there must be 1 to ${BOUNDS.patterns} patterns, not ${show(patterns.length)}`);
  return patterns.map((pattern, index) => checkPattern(`${option}[${index}]`, pattern));
}
