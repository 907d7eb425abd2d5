import type { Enqueued, NewJob } from "../../core/jobs/job.js";
import { type Lane, laneKey } from "../../core/jobs/lane.js";
import type { LimitKeyId } from "../../core/limits/limit-rule.js";
import { isPawlError, pawlError } from "../../core/values/error.js";
import { type Clock, systemClock } from "../../runtime/time/clock.js";
import { joinDuties } from "../port/duties/duty-table.js";
import type { BatchStore } from "../port/enqueue/batches.js";
import type { Store, StoreInfo, StoreTransaction, Wakeup } from "../port/index.js";
import type { JobStore } from "../port/jobs/jobs.js";
import { postgresApiKeys } from "./access/api-keys.js";
import { postgresAudit } from "./access/audit.js";
import { postgresDataKeys } from "./access/data-keys.js";
import { postgresPurges } from "./access/purges.js";
import { postgresTenants } from "./access/tenants.js";
import { claim, claimSuspect } from "./claim/claim.js";
import { claimLimited, claimLimitedSuspect } from "./claim/claim-limited.js";
import { IdlePolls } from "./claim/idle-polls.js";
import { LaneStarts } from "./claim/lane-starts.js";
import { readLiveLanes } from "./claim/live-lanes.js";
import { LowWatermarks } from "./claim/low-watermarks.js";
import { WorkerIds } from "./claim/worker-ids.js";
import { type Db, foreignDb, HandlerTransaction, insideTransaction, storeDb, transactionHandle } from "./connection/db.js";
import { DriverError } from "./connection/errors.js";
import { postgresDuties, postgresServiceDuties } from "./duties/duties.js";
import { unblock } from "./duties/unblock.js";
import { enqueuePlain, isOneNow } from "./enqueue/enqueue.js";
import { enqueueMixed, needsChecks } from "./enqueue/enqueue-mixed.js";
import type { StoredJobs } from "./enqueue/enqueue-one.js";
import { enqueueOnce, findBatch } from "./enqueue/idempotent-batch.js";
import { postgresIngest } from "./enqueue/ingest-limits.js";
import { JOBS_PER_ROW } from "./enqueue/ready-rows.js";
import { CommitFlusher } from "./handoff/commit-flusher.js";
import { PostgresHandoff } from "./handoff/idle-workers.js";
import { postgresBreakers } from "./jobs/breakers.js";
import { type ControlReport, cancel, deleteJob, pause, promoteJob, redrive, resume } from "./jobs/control.js";
import { readCounts } from "./jobs/counters.js";
import { postgresDead } from "./jobs/dead-groups.js";
import { readExport } from "./jobs/export.js";
import { postgresReplies } from "./jobs/idempotency-replies.js";
import { list } from "./jobs/list.js";
import { postgresWorkers } from "./jobs/live-workers.js";
import { get, history, lanes, logs } from "./jobs/read.js";
import { log, recall, record } from "./jobs/records.js";
import { restore } from "./jobs/restore.js";
import { postgresTargets } from "./jobs/targets.js";
import { getTasks, publishTasks } from "./jobs/tasks.js";
import { type AdmittedReport, admit } from "./limits/admit.js";
import { postgresLimits } from "./limits/limits.js";
import { pausedLanes, pauseLanes, resumeLanes } from "./limits/pauses.js";
import { postgresPolicies } from "./limits/policies.js";
import { postgresCheckup } from "./observe/checkup.js";
import { postgresEvents } from "./observe/events.js";
import { postgresExplain } from "./observe/explain.js";
import { postgresSeries } from "./observe/series.js";
import { readTenantCounts, TenantCounts } from "./observe/tenant-counts.js";
import { postgresSchedules } from "./schedules/schedules.js";
import { intents, renew } from "./settle/renew.js";
import { RENEW } from "./settle/renew-statement.js";
import { type RenewalData, threadRenewer } from "./settle/renewer.js";
import { settle } from "./settle/settle.js";
import { Wakeups } from "./wakeups/wakeups.js";

export interface PostgresStoreOptions {
  readonly db: Db;
  readonly engine: Omit<StoreInfo, "capabilities">;
  /** a name no other process has */
  readonly self: string;
  readonly clock?: Clock;
  /** how many jobs of a lane that are enqueued together go into one ready row; tests make rows of a few */
  readonly jobsPerRow?: number;
  /** called when everything else is closed: stops the embedded server */
  readonly onClose?: () => Promise<void>;
}

/** The store port on Postgres: a wiring diagram. Each verb is in the file of its name. */
export function postgresStore({ db: connected, engine, self, clock = systemClock, jobsPerRow = JOBS_PER_ROW, onClose }: PostgresStoreOptions): Store {
  const db = storeDb(connected, (limitChecks) => admitAt(limitChecks));
  const workers = new WorkerIds(db);
  const knownLanes = new LaneStarts(clock.monotonic);
  const claiming = { db, workers, knownLanes };
  const watermarks = new LowWatermarks();
  const flusher = new CommitFlusher(db);
  const tenantCounts = new TenantCounts((tenant) => readTenantCounts(db, tenant));
  const wakeups = new Wakeups(db, clock, self, engine.engine !== "pglite" && db.now() === null);
  const idlePolls = new IdlePolls(
    clock.monotonic,
    () => knownLanes.seenUpTo,
    () => wakeups.receives(),
  );
  wakeups.on((wakeup) => {
    if (wakeup.kind === "ready" || wakeup.kind === "lanes") idlePolls.onWakeup();
    if (wakeup.kind !== "ready") return;
    for (const lane of wakeup.lanes) {
      knownLanes.sweepNext(lane);
      if (wakeup.admittedSection === true) knownLanes.admittedArrived(lane);
    }
  });
  let closed = false;
  let server: string | undefined;
  /** Nothing that was known of one server need be true of another. */
  const onServer = (which: string): void => {
    if (server !== undefined && server !== which) {
      knownLanes.forget();
      watermarks.forget();
      idlePolls.onWakeup();
    }
    server = which;
  };

  const ready = (lanes: readonly Lane[]): void => {
    if (lanes.length > 0) wakeups.send({ kind: "ready", lanes: distinct(lanes) });
  };
  const afterChange = async (controlled: Promise<ControlReport>): Promise<ControlReport["change"]> => {
    const { change, readied, finished, dueIn } = await controlled;
    if (readied !== undefined) ready(readied);
    if (finished !== undefined) wakeups.send({ kind: "finished", jobs: [finished] });
    if (dueIn !== undefined) wakeups.send({ kind: "scheduled", dueIn });
    if (change.kind === "changed" && change.from === change.to) wakeups.send({ kind: "intent" });
    return change;
  };

  const tellAdmitted = (lanes: readonly Lane[]): void => {
    if (lanes.length > 0) wakeups.send({ kind: "ready", lanes: distinct(lanes), admittedSection: true });
  };
  const admitted = ({ lanes, admittedLanes, nextIn }: AdmittedReport): void => {
    tellAdmitted(admittedLanes);
    const announced = new Set(admittedLanes.map(laneKey));
    ready(lanes.filter((lane) => !announced.has(laneKey(lane))));
    if (nextIn !== undefined) wakeups.send({ kind: "admit", dueIn: nextIn });
  };
  /** After a commit that left limit checks at these limit keys. `made`: they are known to be there. */
  async function admitAt(limitKeys: ReadonlySet<LimitKeyId>, how?: { readonly made: boolean }): Promise<void> {
    if (limitKeys.size === 0) return;
    try {
      admitted(await admit(db, [...limitKeys], how));
    } catch {
      // The limit checks are stored: the duty looks.
      wakeups.send({ kind: "admit", dueIn: 0 });
    }
  }

  const jobs: JobStore = {
    enqueue: (batch, tx) => enqueue(batch, tx),
    get: (scope, id) => get(db, scope, id),
    lanes: (scope, ids) => lanes(db, scope, ids),
    list: (scope, filter, page) => list(db, scope, filter, page),
    history: (scope, id, part) => history(db, scope, id, part),
    logs: (scope, id, part) => logs(db, scope, id, part),
    whole: (scope, page) => readExport(db, scope, page),
    cancel: (scope, id, reason) => afterChange(cancel(db, scope, id, reason)),
    pause: (scope, id, reason) => afterChange(pause(db, scope, id, reason)),
    resume: (scope, id) => afterChange(resume(db, scope, id)),
    promote: (scope, id) => afterChange(promoteJob(db, scope, id)),
    redrive: (scope, id, how) => afterChange(redrive(db, scope, id, how)),
    delete: (scope, id) => afterChange(deleteJob(db, scope, id)),
    restore: (batch) => restore(db, batch),
  };

  const batches: BatchStore = {
    async enqueue(request, batch, tx) {
      const once =
        tx === undefined
          ? await unknownIfLost(batch, () => db.transaction((own) => enqueueOnce(db, own, request, batch, jobsPerRow)))
          : await enqueueOnce(db, insideTransaction(tx), request, batch, jobsPerRow);
      if (once.kind !== "stored") return once;
      if (tx === undefined) await stored(batch, once.answers, once.now);
      return { kind: "stored", answers: once.answers };
    },
    get: (request) => findBatch(db, db, request),
  };

  async function enqueue(batch: readonly NewJob[], tx?: StoreTransaction): Promise<readonly Enqueued[]> {
    if (batch.length === 0) return [];
    const guarded = batch.some(needsChecks);
    if (tx !== undefined) {
      const own = insideTransaction(tx);
      return (await (guarded ? enqueueMixed(db, own, batch, jobsPerRow) : enqueuePlain(db, own, batch, jobsPerRow))).answers;
    }
    const inlineNotify = !guarded && isOneNow(batch) ? wakeups.inlineNotify([batch[0].lane]) : undefined;
    const { answers, now, handedOff } = await unknownIfLost<StoredJobs>(batch, () =>
      guarded ? db.transaction((own) => enqueueMixed(db, own, batch, jobsPerRow)) : enqueuePlain(db, db, batch, jobsPerRow, inlineNotify),
    );
    if (inlineNotify === undefined) await stored(batch, answers, now);
    else if (handedOff === undefined) wakeups.notifyHere({ kind: "ready", lanes: [(batch[0] as NewJob).lane] });
    else await flusher.onDisk(handedOff);
    return answers;
  }

  async function stored(batch: readonly NewJob[], answers: readonly Enqueued[], now: number): Promise<void> {
    notifyOfNew(batch, answers, now);
    // The jobs are stored: if this fails, the duty does it.
    if (batch.some((job) => job.dependsOn !== undefined)) ready((await unblock(db, batch.length).catch(() => undefined))?.readied ?? []);
  }

  function notifyOfNew(batch: readonly NewJob[], answers: readonly Enqueued[], now: number): void {
    const lanes = new Set<Lane>();
    let dueIn = Number.POSITIVE_INFINITY;
    batch.forEach((job, index) => {
      if (answers[index]?.kind !== "created") return;
      const wait = Math.max(0, (job.runAt ?? now + (job.delay ?? 0)) - now);
      if (wait > 0) dueIn = Math.min(dueIn, wait);
      // One that depends on others may be ready as well: they may be done.
      else lanes.add(job.lane);
    });
    ready([...lanes]);
    if (Number.isFinite(dueIn)) wakeups.send({ kind: "scheduled", dueIn });
  }

  const events = postgresEvents(db, { changed: () => wakeups.send({ kind: "watch" }), recorded: () => wakeups.send({ kind: "events" }) });

  const shared = engine.engine !== "pglite";
  return {
    engine: { ...engine, capabilities: { transactions: true, handoff: wakeups.others, shared } },
    jobs,
    batches,
    leases: {
      claim(request) {
        idlePolls.onClaim();
        return claim(claiming, request);
      },
      claimLimited(request) {
        idlePolls.onClaim();
        return claimLimited(claiming, request);
      },
      claimSuspect: async (request) => (await claimSuspect(db, workers, request)) ?? claimLimitedSuspect(db, workers, request),
      renew: async (worker, leases, duration) => renew(db, await workers.id(worker), leases, duration),
      async settle(worker, settlements, tx) {
        const { answers, readied, admittedLanes, freedLimitKeys } = await settle({ db, workers }, worker, settlements, tx);
        tellAdmitted(admittedLanes);
        await admitAt(freedLimitKeys, { made: true });
        ready(readied);
        if (tx === undefined) wakeups.send({ kind: "finished", jobs: settlements.map((item) => item.job) });
        const again: Lane[] = [];
        let dueIn = Number.POSITIVE_INFINITY;
        for (const { lane, patch } of settlements) {
          if (patch.next === "ready") again.push(lane);
          if (patch.delay !== undefined) dueIn = Math.min(dueIn, patch.delay);
        }
        ready(again);
        if (Number.isFinite(dueIn)) wakeups.send({ kind: "scheduled", dueIn });
        return answers;
      },
      intents: async (worker, leases) => intents(db, await workers.id(worker), leases),
    },
    lanes: {
      live(queues, tasks) {
        wakeups.listenForWork();
        return idlePolls.poll(() => readLiveLanes({ db, knownLanes, onServer }, queues, tasks));
      },
      async pause(kind, name) {
        await pauseLanes(db, kind, name);
      },
      async resume(kind, name) {
        await resumeLanes(db, kind, name);
        wakeups.send({ kind: "lanes" });
      },
      paused: () => pausedLanes(db),
    },
    tasks: {
      publish: (tasks) => publishTasks(db, tasks),
      get: (names, tx) => getTasks(tx === undefined ? db : insideTransaction(tx), names),
    },
    limits: postgresLimits(db),
    workers: postgresWorkers(db, workers),
    dead: postgresDead(db),
    checkup: postgresCheckup(db, wakeups),
    breakers: postgresBreakers(db, () => wakeups.send({ kind: "lanes" })),
    ingest: postgresIngest(db, watermarks),
    explain: postgresExplain(db, knownLanes, watermarks),
    policies: postgresPolicies(db, () => wakeups.send({ kind: "lanes" })),
    series: postgresSeries(db),
    events,
    targets: postgresTargets(db, () => wakeups.send({ kind: "lanes" })),
    apiKeys: postgresApiKeys(db),
    audit: postgresAudit(db),
    replies: postgresReplies(db),
    dataKeys: postgresDataKeys(db),
    purges: postgresPurges(db),
    tenants: postgresTenants(db, (wakeup) => wakeups.send(wakeup)),
    schedules: postgresSchedules({ db, wakeup: (wakeup) => wakeups.send(wakeup), stored }),
    duties: joinDuties(
      postgresDuties({
        db,
        watermarks,
        onPoll: {
          server: onServer,
          ready(last) {
            if (idlePolls.onMaintenancePoll(last)) wakeups.notifyHere({ kind: "look" });
          },
        },
        ready,
        finished: (ended) => wakeups.send({ kind: "finished", jobs: ended }),
        admitted,
        admitAt,
        stored,
      }),
      postgresServiceDuties(events),
    ),
    records: {
      counts: () => readCounts(db, watermarks),
      tenantCounts: (tenant) => tenantCounts.of(tenant),
      log: async (worker, entries) => log(db, await workers.id(worker), entries),
      recall: (job, name) => recall(db, job, name),
      record: async (worker, entry) => record(db, await workers.id(worker), entry),
    },
    transactions: {
      join: (tx) => transactionHandle(foreignDb(db, tx)),
      run: (work) =>
        db.transaction((own) => {
          const tx = new HandlerTransaction(own);
          return work(tx, transactionHandle(foreignDb(db, tx)));
        }),
    },
    onWakeup: (listener: (wakeup: Wakeup) => void) => wakeups.on(listener),
    sendWakeup: (wakeup: Wakeup) => wakeups.send(wakeup),
    receivesWakeups: () => wakeups.receives(),
    // A clock of the tests cannot be followed by another thread.
    ...(wakeups.others ? { handoff: new PostgresHandoff({ db, workers, wakeups, knownLanes, clock }) } : {}),
    ...(db.now() !== null ? {} : { renewer: (worker, { duration, every }) => threadRenewer(() => renewalData(worker, duration, every)) }),
    async close() {
      if (closed) return;
      closed = true;
      await wakeups.close();
      await db.driver.close();
      await onClose?.();
    },
  } satisfies Store;

  async function renewalData(worker: Parameters<WorkerIds["id"]>[0], duration: number, every: number): Promise<RenewalData> {
    const link = await db.driver.renewalLink();
    if (link === undefined) throw pawlError("store_failed", { operation: "renewal", reason: "the driver has no link for a thread" });
    return { link, statement: db.inSchema(RENEW.statement), worker: await workers.id(worker), duration, every };
  }
}

/** A commit that was not answered may have happened all the same. */
async function unknownIfLost<T>({ length: count }: readonly NewJob[], store: () => Promise<T>): Promise<T> {
  try {
    return await store();
  } catch (error) {
    if (isPawlError(error) && error.cause instanceof DriverError && error.cause.fate === "unknown")
      throw pawlError("enqueue_uncertain", { count }, error);
    throw error;
  }
}

function distinct(lanes: readonly Lane[]): readonly Lane[] {
  return lanes.length < 2 ? lanes : [...new Map(lanes.map((lane) => [laneKey(lane), lane])).values()];
}
