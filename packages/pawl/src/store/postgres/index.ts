import { isPawlError, pawlError } from "../../core/error.js";
import type { Enqueued, NewJob } from "../../core/job.js";
import { type Lane, laneKey } from "../../core/lane.js";
import { type Clock, systemClock } from "../../runtime/clock.js";
import type { ForeignTransaction, Hint, Store, StoreInfo } from "../port.js";
import type { BatchStore } from "../port-batches.js";
import type { JobStore } from "../port-jobs.js";
import { type Admitted, admit } from "./admit.js";
import { postgresApiKeys } from "./api-keys.js";
import { postgresAudit } from "./audit.js";
import { enqueueOnce, findBatch } from "./batches.js";
import { postgresBreakers } from "./breakers.js";
import { carryOut } from "./carry-out.js";
import { postgresCheckup } from "./checkup.js";
import { claim, claimSuspect } from "./claim.js";
import { claimLimited, claimLimitedSuspect } from "./claim-limited.js";
import { type Controlled, cancel, drop, pause, redrive, resume, retry } from "./control.js";
import { fold, readCounts } from "./counts.js";
import { postgresDataKeys } from "./data-keys.js";
import { type Db, foreignDb } from "./db.js";
import { postgresDead } from "./dead-groups.js";
import { enqueuePlain, isOneNow } from "./enqueue.js";
import { enqueueApart, isGuarded } from "./enqueue-apart.js";
import type { StoredJobs } from "./enqueue-one.js";
import { DriverError } from "./errors.js";
import { postgresEvents } from "./events.js";
import { expire } from "./expire.js";
import { postgresExplain } from "./explain.js";
import { Flusher } from "./flusher.js";
import { Hints } from "./hints.js";
import { postgresIngest } from "./ingest.js";
import { sameKnocks } from "./knocks.js";
import { LaneBounds } from "./lane-bounds.js";
import { postgresLimits } from "./limits.js";
import { list } from "./list.js";
import { live } from "./live.js";
import { LowWaters } from "./low-water.js";
import { pausedLanes, pauseLanes, resumeLanes } from "./pauses.js";
import { postgresPolicies } from "./policies.js";
import { promote } from "./promote.js";
import { prune } from "./prune.js";
import { pulse } from "./pulse.js";
import { postgresPurges } from "./purges.js";
import { get, history, lanes, logs } from "./read.js";
import { JOBS_PER_ROW } from "./ready-rows.js";
import { reap } from "./reap.js";
import { log, recall, record } from "./records.js";
import { intents, RENEW, renew } from "./renew.js";
import { type RenewalData, threadRenewer } from "./renewal.js";
import { postgresReplies } from "./replies.js";
import { Rest } from "./rest.js";
import { restore } from "./restore.js";
import { postgresSchedules } from "./schedules.js";
import { PostgresSeats } from "./seats.js";
import { postgresSeries } from "./series.js";
import { postgresWorkers } from "./serving.js";
import { settle } from "./settle.js";
import { readStanding, Standings } from "./standing.js";
import { postgresTargets } from "./targets.js";
import { getTasks, publishTasks } from "./tasks.js";
import { unblock } from "./unblock.js";
import { whole } from "./whole.js";
import { Workers } from "./workers.js";

export interface PostgresStoreOptions {
  readonly db: Db;
  readonly engine: StoreInfo;
  /** a name no other process has */
  readonly self: string;
  readonly clock?: Clock;
  /** how many jobs of a lane that are enqueued together go into one ready row; tests make rows of a few */
  readonly jobsPerRow?: number;
  /** called when everything else is closed: stops the embedded server */
  readonly onClose?: () => Promise<void>;
}

/** The store port on Postgres: a wiring diagram. Each verb is in the file of its name. */
export function postgresStore({ db, engine, self, clock = systemClock, jobsPerRow = JOBS_PER_ROW, onClose }: PostgresStoreOptions): Store {
  const workers = new Workers(db);
  const bounds = new LaneBounds(clock.monotonic);
  const claiming = { db, workers, bounds };
  const low = new LowWaters();
  const flusher = new Flusher(db);
  const standings = new Standings((tenant) => readStanding(db, tenant));
  const hints = new Hints(db, clock, self, engine.engine !== "pglite" && db.now() === null);
  const rest = new Rest(
    clock.monotonic,
    () => bounds.seenUpTo,
    () => hints.hears(),
  );
  hints.on((hint) => {
    if (hint.kind === "ready" || hint.kind === "lanes") rest.hear();
    if (hint.kind !== "ready") return;
    for (const lane of hint.lanes) {
      bounds.wake(lane);
      if (hint.front === true) bounds.fronted(lane);
    }
  });
  let closed = false;
  let server: string | undefined;
  /** Nothing that was known of one server need be true of another. */
  const onServer = (which: string): void => {
    if (server !== undefined && server !== which) {
      bounds.forget();
      low.forget();
      rest.hear();
    }
    server = which;
  };

  const ready = (lanes: readonly Lane[]): void => {
    if (lanes.length > 0) hints.give({ kind: "ready", lanes: distinct(lanes) });
  };
  const after = async (controlled: Promise<Controlled>): Promise<Controlled["change"]> => {
    const { change, readied, finished, dueIn } = await controlled;
    if (readied !== undefined) ready(readied);
    if (finished !== undefined) hints.give({ kind: "finished", jobs: [finished] });
    if (dueIn !== undefined) hints.give({ kind: "scheduled", dueIn });
    if (change.kind === "changed" && change.from === change.to) hints.give({ kind: "intent" });
    return change;
  };

  const fronted = (lanes: readonly Lane[]): void => {
    if (lanes.length > 0) hints.give({ kind: "ready", lanes: distinct(lanes), front: true });
  };
  const admitted = ({ lanes, fronts, nextIn }: Admitted): void => {
    fronted(fronts);
    const known = new Set(fronts.map(laneKey));
    ready(lanes.filter((lane) => !known.has(laneKey(lane))));
    if (nextIn !== undefined) hints.give({ kind: "admit", dueIn: nextIn });
  };
  db.onFronts = fronted;
  db.onKnock = async (gates, how) => {
    try {
      admitted(await admit(db, [...gates], how));
    } catch {
      // What knocked is stored: the duty looks.
      hints.give({ kind: "admit", dueIn: 0 });
    }
  };

  const jobs: JobStore = {
    enqueue: (batch, tx) => enqueue(batch, tx),
    get: (scope, id) => get(db, scope, id),
    lanes: (scope, ids) => lanes(db, scope, ids),
    list: (scope, filter, page) => list(db, scope, filter, page),
    history: (scope, id, part) => history(db, scope, id, part),
    logs: (scope, id, part) => logs(db, scope, id, part),
    whole: (scope, page) => whole(db, scope, page),
    cancel: (scope, id, reason) => after(cancel(db, scope, id, reason)),
    pause: (scope, id) => after(pause(db, scope, id)),
    resume: (scope, id) => after(resume(db, scope, id)),
    retry: (scope, id) => after(retry(db, scope, id)),
    redrive: (scope, id, how) => after(redrive(db, scope, id, how)),
    drop: (scope, id) => after(drop(db, scope, id)),
  };

  const batches: BatchStore = {
    async enqueue(request, batch, tx) {
      const once =
        tx === undefined
          ? await unknownIfLost(batch, () => db.transaction((own) => enqueueOnce(db, own, request, batch, jobsPerRow)))
          : await enqueueOnce(db, foreignDb(db, tx), request, batch, jobsPerRow);
      if (once.kind !== "stored") return once;
      if (tx === undefined) await stored(batch, once.answers, once.now);
      return { kind: "stored", answers: once.answers };
    },
    get: (request) => findBatch(db, db, request),
  };

  async function enqueue(batch: readonly NewJob[], tx?: ForeignTransaction): Promise<readonly Enqueued[]> {
    if (batch.length === 0) return [];
    const guarded = batch.some(isGuarded);
    if (tx !== undefined) {
      const own = foreignDb(db, tx);
      return (await (guarded ? enqueueApart(db, own, batch, jobsPerRow) : enqueuePlain(db, own, batch, jobsPerRow))).answers;
    }
    const ride = !guarded && isOneNow(batch) ? hints.ride([batch[0].lane]) : undefined;
    const { answers, now, handed } = await unknownIfLost<StoredJobs>(batch, () =>
      guarded ? db.transaction((own) => enqueueApart(db, own, batch, jobsPerRow)) : enqueuePlain(db, db, batch, jobsPerRow, ride),
    );
    if (ride === undefined) await stored(batch, answers, now);
    else if (handed === undefined) hints.tell({ kind: "ready", lanes: [(batch[0] as NewJob).lane] });
    else await flusher.onDisk(handed);
    return answers;
  }

  async function stored(batch: readonly NewJob[], answers: readonly Enqueued[], now: number): Promise<void> {
    tellOfNew(batch, answers, now);
    // The jobs are stored: if this fails, the duty does it.
    if (batch.some((job) => job.dependsOn !== undefined)) ready((await unblock(db, batch.length).catch(() => undefined))?.readied ?? []);
  }

  function tellOfNew(batch: readonly NewJob[], answers: readonly Enqueued[], now: number): void {
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
    if (Number.isFinite(dueIn)) hints.give({ kind: "scheduled", dueIn });
  }

  return {
    engine,
    jobs,
    batches,
    leases: {
      claim(request) {
        rest.claims();
        return claim(claiming, request);
      },
      claimLimited(request) {
        rest.claims();
        return claimLimited(claiming, request);
      },
      claimSuspect: async (request) => (await claimSuspect(db, workers, request)) ?? claimLimitedSuspect(db, workers, request),
      renew: async (worker, leases, duration) => renew(db, await workers.id(worker), leases, duration),
      async settle(worker, settlements, tx) {
        const { answers, readied } = await settle({ db, workers }, worker, settlements, tx);
        ready(readied);
        if (tx === undefined) hints.give({ kind: "finished", jobs: settlements.map((item) => item.job) });
        const again: Lane[] = [];
        let dueIn = Number.POSITIVE_INFINITY;
        for (const { lane, patch } of settlements) {
          if (patch.next === "ready") again.push(lane);
          if (patch.delay !== undefined) dueIn = Math.min(dueIn, patch.delay);
        }
        ready(again);
        if (Number.isFinite(dueIn)) hints.give({ kind: "scheduled", dueIn });
        return answers;
      },
      async reap(limit) {
        const { leases, jobs: reaped, lanes } = await reap(db, low, limit);
        ready(lanes);
        return { leases, jobs: reaped };
      },
      intents: async (worker, leases) => intents(db, await workers.id(worker), leases),
      transaction: (work) => db.transaction((tx) => work(sameKnocks(tx, { query: (text, values) => tx.run(text, values) }))),
    },
    lanes: {
      live(queues, tasks) {
        hints.hearWork();
        return rest.look(() => live({ db, bounds, onServer }, queues, tasks));
      },
      async pause(kind, name) {
        await pauseLanes(db, kind, name);
      },
      async resume(kind, name) {
        await resumeLanes(db, kind, name);
        hints.give({ kind: "lanes" });
      },
      paused: () => pausedLanes(db),
    },
    tasks: {
      publish: (tasks) => publishTasks(db, tasks),
      get: (names, tx) => getTasks(tx === undefined ? db : foreignDb(db, tx), names),
    },
    limits: postgresLimits(db, low, admitted),
    workers: postgresWorkers(db, workers),
    dead: postgresDead(db),
    checkup: postgresCheckup(db, hints),
    breakers: postgresBreakers(db, () => hints.give({ kind: "lanes" })),
    ingest: postgresIngest(db, low),
    explain: postgresExplain(db, bounds, low),
    policies: postgresPolicies(db, () => hints.give({ kind: "lanes" })),
    series: postgresSeries(db),
    events: postgresEvents(db, { changed: () => hints.give({ kind: "watch" }), recorded: () => hints.give({ kind: "events" }) }),
    targets: postgresTargets(db, () => hints.give({ kind: "lanes" })),
    apiKeys: postgresApiKeys(db),
    audit: postgresAudit(db),
    replies: postgresReplies(db),
    dataKeys: postgresDataKeys(db),
    purges: postgresPurges(db, (hint) => hints.give(hint)),
    schedules: postgresSchedules({ db, low, hint: (hint) => hints.give(hint), stored }),
    duties: {
      pulse: () =>
        pulse(db, low, {
          server: onServer,
          ready(last) {
            if (rest.pulsed(last)) hints.tell({ kind: "look" });
          },
        }),
      async promote(limit) {
        const { lanes, ...report } = await promote(db, low, limit);
        ready(lanes);
        return report;
      },
      async expire(limit) {
        const { readied, finished } = await expire(db, low, limit);
        ready(readied);
        if (finished.length > 0) hints.give({ kind: "finished", jobs: finished });
        return finished.length;
      },
      async unblock(limit) {
        const { count, readied } = await unblock(db, limit);
        ready(readied);
        return count;
      },
      async carryOut(limit) {
        const { count, readied } = await carryOut(db, limit);
        ready(readied);
        return count;
      },
      fold: (limit) => fold(db, low, limit),
      prune: (rules) => prune(db, rules),
      restore: (batch) => restore(db, batch),
    },
    records: {
      counts: () => readCounts(db, low),
      standing: (tenant) => standings.of(tenant),
      log: async (worker, entries) => log(db, await workers.id(worker), entries),
      recall: (job, name) => recall(db, job, name),
      record: async (worker, entry) => record(db, await workers.id(worker), entry),
    },
    onHint: (listener: (hint: Hint) => void) => hints.on(listener),
    hint: (hint: Hint) => hints.give(hint),
    hearsOthers: () => hints.hears(),
    // A clock of the tests cannot be followed by another thread.
    ...(hints.others ? { seats: new PostgresSeats({ db, workers, hints, bounds, clock }) } : {}),
    ...(db.now() !== null ? {} : { renewer: (worker, { duration, every }) => threadRenewer(() => renewalData(worker, duration, every)) }),
    async close() {
      if (closed) return;
      closed = true;
      await hints.close();
      await db.driver.close();
      await onClose?.();
    },
  } satisfies Store;

  async function renewalData(worker: Parameters<Workers["id"]>[0], duration: number, every: number): Promise<RenewalData> {
    const link = await db.driver.renewalLink();
    if (link === undefined) throw pawlError("store_failed", { operation: "renewal", reason: "the driver has no link for a thread" });
    return { link, statement: db.inSchema(RENEW), worker: await workers.id(worker), duration, every };
  }
}

/** A commit that was not answered may have happened all the same. */
async function unknownIfLost<T>({ length: count }: readonly NewJob[], store: () => Promise<T>): Promise<T> {
  try {
    return await store();
  } catch (error) {
    if (isPawlError(error) && error.cause instanceof DriverError && error.cause.fate === "unknown")
      throw pawlError("enqueue_unknown", { count }, error);
    throw error;
  }
}

function distinct(lanes: readonly Lane[]): readonly Lane[] {
  return lanes.length < 2 ? lanes : [...new Map(lanes.map((lane) => [laneKey(lane), lane])).values()];
}
