import { type TargetRecord, type TargetRef, unseenIn } from "../../core/access/push-target.js";
import { isOwnTask } from "../../core/access/tenant.js";
import type { RandomBytes } from "../../core/jobs/id.js";
import { BOUNDS } from "../../core/values/bounds.js";
import { DEFAULTS } from "../../core/values/defaults.js";
import type { Duration } from "../../core/values/duration.js";
import { pawlError } from "../../core/values/error.js";
import { checkName } from "../../core/values/name.js";
import type { Scope, Store } from "../../store/port/index.js";
import { checkDuration, checkKeys, checkObject, checkWhole, invalid, shortened, show } from "../check.js";
import { type PagedList, type PageOptions, pagedList, pageOfRows, readPage, refCursor } from "../page.js";

/** Where the jobs of one task of a tenant are delivered, instead of being run by code. See docs/push.md. */
export interface Targets {
  /** Makes one, and shows its secret this once; or changes the one there is, which keeps its secret. */
  put(task: string, target: TargetOptions): Promise<TargetWithSecret>;
  get(target: TargetReference): Promise<TargetView>;
  /** by tenant and task */
  list(filter?: { readonly tenant?: string }, page?: PageOptions): PagedList<TargetView>;
  /** A new secret, shown this once. Deliveries are signed with the one before too, for `overlap` (a day if left out). */
  rotate(target: TargetReference, how?: { readonly keepOldFor?: Duration }): Promise<TargetWithSecret>;
  /** Its jobs wait from then on; what is being delivered ends as it does. */
  delete(target: TargetReference): Promise<void>;
}

/** By its task, of the default tenant or of the one that is named. */
export type TargetReference = string | { readonly task: string; readonly tenant?: string };

export interface TargetOptions {
  /** https://, at a public address unless the service allows others */
  readonly url: string;
  readonly tenant?: string;
  /** deliveries at a time, of each process that delivers; 10 if left out */
  readonly concurrency?: number;
  /** how long one delivery may take to be answered; 15 s if left out */
  readonly timeout?: Duration;
}

export interface TargetView extends TargetRef {
  readonly url: string;
  readonly concurrency: number;
  /** ms */
  readonly timeout: number;
  readonly createdAt: Date;
  readonly changedAt: Date;
  /** it answered 410 then: nothing is delivered until it is put again */
  readonly goneAt?: Date;
}

/** A target, and its secret if that is new: it can never be read again. */
export interface TargetWithSecret {
  readonly target: TargetView;
  readonly secret?: string;
}

/** What says whether jobs may be pushed to a URL, by an error that says why not; the service's own does. */
export type CheckTarget = (url: string) => void;

export interface TargetDeps {
  readonly store: Store;
  readonly randomBytes: RandomBytes;
  /** whether the store encrypts what it is given: no secret is stored plain */
  readonly encrypted: boolean;
  readonly check?: CheckTarget;
}

const OPTION_KEYS: ReadonlySet<string> = new Set(["url", "tenant", "concurrency", "timeout"] satisfies (keyof TargetOptions)[]);
const FILTER_KEYS: ReadonlySet<string> = new Set(["tenant"]);
const CURSOR = refCursor("targets", ["tenant", "task"]);
const MAX_CONCURRENCY = 1_000;
const TIMEOUT_MS = { min: 100, max: 300_000 } as const;
/** Standard Webhooks has 24 to 64 */
const SECRET_BYTES = 32;

export class ScopedTargets implements Targets {
  constructor(
    private readonly deps: TargetDeps,
    private readonly scope: Scope,
  ) {}

  async put(task: string, targetOptions: TargetOptions): Promise<TargetWithSecret> {
    const { tenant, ...options } = checkTargetOptions(targetOptions);
    const ref = this.#ref({ task, ...(tenant === undefined ? {} : { tenant }) });
    if (isOwnTask(ref.task)) throw pawlError("task_reserved", { task: ref.task });
    const url = this.#checkUrl(options.url);
    const secret = this.#newSecret();
    const { concurrency, timeout } = { ...DEFAULTS.target, ...options };
    const put = await this.deps.store.targets.put({ ...ref, url, concurrency, timeout, secret });
    if (put.kind === "full") throw pawlError("targets_full", { tenant: ref.tenant, most: put.most });
    return { target: viewOf(put.target), ...(put.kind === "created" ? { secret } : {}) };
  }

  async get(reference: TargetReference): Promise<TargetView> {
    const ref = this.#ref(reference);
    return viewOf(existing(ref, await this.deps.store.targets.get(this.scope, ref)));
  }

  list(filter: { readonly tenant?: string } = {}, page?: PageOptions): PagedList<TargetView> {
    return pagedList(page, async (one) => {
      checkKeys(checkObject("filter", filter), FILTER_KEYS, "filter.");
      const scope = filter.tenant === undefined ? this.scope : { tenant: this.#tenant(checkName("tenant", filter.tenant)) };
      return pageOfRows(readPage(one, CURSOR), CURSOR, (request) => this.deps.store.targets.list(scope, request), {
        place: ({ tenant, task }) => ({ tenant, task }),
        view: viewOf,
      });
    });
  }

  async rotate(reference: TargetReference, how: { readonly keepOldFor?: Duration } = {}): Promise<TargetWithSecret> {
    checkKeys(checkObject("how", how), new Set(["keepOldFor"]));
    const keepOldFor = checkDuration("keepOldFor", how.keepOldFor ?? DEFAULTS.target.keepOldFor);
    const ref = this.#ref(reference);
    const secret = this.#newSecret();
    return { target: viewOf(existing(ref, await this.deps.store.targets.rotate(ref, { secret, keepOldFor }))), secret };
  }

  async delete(reference: TargetReference): Promise<void> {
    const ref = this.#ref(reference);
    if (!(await this.deps.store.targets.delete(ref))) throw unknown(ref);
  }

  #newSecret(): string {
    if (!this.deps.encrypted) throw pawlError("target_secret_unencrypted");
    return `whsec_${Buffer.from(this.deps.randomBytes(SECRET_BYTES)).toString("base64")}`;
  }

  #checkUrl(url: string): string {
    try {
      this.deps.check?.(url);
      return url;
    } catch (error) {
      throw pawlError("target_forbidden", { reason: (error as Error).message }, error);
    }
  }

  #ref(reference: TargetReference): TargetRef {
    const { task, tenant } = checkReference(reference);
    return { tenant: this.#tenant(tenant), task };
  }

  #tenant(requestedTenant: string | undefined): string {
    if (this.scope === "everyone") return requestedTenant ?? DEFAULTS.job.tenant;
    if (requestedTenant !== undefined && requestedTenant !== this.scope.tenant)
      throw invalid("tenant", `this scheduler acts for ${show(this.scope.tenant)} only`);
    return this.scope.tenant;
  }
}

export function checkReference(reference: TargetReference): { readonly task: string; readonly tenant?: string } {
  if (typeof reference === "string") return { task: checkName("task", reference) };
  const { task, tenant } = checkObject("target", reference) as { task?: unknown; tenant?: unknown };
  return { task: checkName("task", task), ...(tenant === undefined ? {} : { tenant: checkName("tenant", tenant) }) };
}

/** With its times in ms. */
export function checkTargetOptions(options: TargetOptions): { url: string; tenant?: string; concurrency?: number; timeout?: number } {
  checkKeys(checkObject("target", options), OPTION_KEYS, "target.");
  const { url, tenant, concurrency, timeout } = options;
  if (typeof url !== "string" || url.length > BOUNDS.targetUrl || !URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw invalid("target.url", `it is not an https:// URL of up to ${BOUNDS.targetUrl} characters`);
  const unseen = unseenIn(url);
  if (unseen !== undefined) throw invalid("target.url", unseen);
  return {
    url,
    ...(tenant === undefined ? {} : { tenant: checkName("tenant", tenant) }),
    ...(concurrency === undefined ? {} : { concurrency: checkWhole("target.concurrency", concurrency, 1, MAX_CONCURRENCY) }),
    ...(timeout === undefined
      ? {}
      : { timeout: checkWhole("target.timeout", checkDuration("target.timeout", timeout), TIMEOUT_MS.min, TIMEOUT_MS.max) }),
  };
}

function existing(ref: TargetRef, found: TargetRecord | undefined): TargetRecord {
  if (found === undefined) throw unknown(ref);
  return found;
}

function unknown({ tenant, task }: TargetRef) {
  return pawlError("target_unknown", { task: shortened(task), tenant: shortened(tenant) });
}

function viewOf({ createdAt, changedAt, goneAt, ...facts }: TargetRecord): TargetView {
  return {
    ...facts,
    createdAt: new Date(createdAt),
    changedAt: new Date(changedAt),
    ...(goneAt === undefined ? {} : { goneAt: new Date(goneAt) }),
  };
}
