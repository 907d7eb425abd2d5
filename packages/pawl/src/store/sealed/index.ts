import { pawlError } from "../../core/error.js";
import type { Failure } from "../../core/failure.js";
import { type JobId, tailOf } from "../../core/id.js";
import type { AttemptRecord, JobRecord, LogLine } from "../../core/job.js";
import type { Patch } from "../../core/outcome.js";
import { isSealed, SEALED_VALUE, unreadableReason } from "../../core/sealed.js";
import type { Store } from "../port.js";
import type { JobStore } from "../port-jobs.js";
import type { Claimed, LeaseStore, Settlement } from "../port-leases.js";
import type { LogEntry, RecordStore } from "../port-records.js";
import type { Seats } from "../port-seats.js";
import { sealedBatches, sealedReplies } from "./digests.js";
import { sealInputs } from "./inputs.js";
import { sealedSchedules } from "./schedules.js";
import { inputPlace, jobPlace, type Opened, Opener, Sealer } from "./sealer.js";
import { sealedTargets } from "./targets.js";
import type { Vault } from "./vault.js";

/**
 * A store in which what jobs hold is sealed: inputs, outputs, failures, progress, log lines and recorded effects go in
 * encrypted and come out as they were. Everything above it works on the plain values, everything below on sealed ones. What
 * leaves for an archive (`exportFinished`) stays sealed, and comes back so.
 */
export function sealedStore(store: Store, vault: Vault): Store {
  return {
    ...store,
    get engine() {
      return store.engine;
    },
    jobs: sealedJobs(store.jobs, vault),
    batches: sealedBatches(store.batches, vault),
    replies: sealedReplies(store.replies, vault),
    purges: {
      ...store.purges,
      async rest(tenant, limit) {
        const gone = await store.purges.rest(tenant, limit);
        vault.forget(tenant);
        return gone;
      },
    },
    leases: sealedLeases(store.leases, vault),
    ...(store.seats === undefined ? {} : { seats: sealedSeats(store.seats, vault) }),
    records: sealedRecords(store.records, vault),
    schedules: sealedSchedules(store.schedules, vault),
    targets: sealedTargets(store.targets, vault),
    dead: {
      async groups(scope, filter, limit) {
        const groups = await store.dead.groups(scope, filter, limit);
        const samples = await openRecords(
          vault,
          groups.map(({ sample }) => sample),
        );
        return groups.map((group, place) => ({ ...group, sample: samples[place] as JobRecord }));
      },
    },
    explain: {
      ...store.explain,
      async look(scope, id) {
        const look = await store.explain.look(scope, id);
        return look && { ...look, job: await openRecord(vault, look.job) };
      },
    },
  };
}

function sealedJobs(jobs: JobStore, vault: Vault): JobStore {
  return {
    ...jobs,
    enqueue: async (batch, tx) => jobs.enqueue(await sealInputs(vault, batch, tx), tx),
    async get(scope, id) {
      const record = await jobs.get(scope, id);
      return record && openRecord(vault, record);
    },
    async list(scope, filter, page) {
      const found = await jobs.list(scope, filter, page);
      return { ...found, jobs: await openRecords(vault, found.jobs) };
    },
    async history(scope, id, part) {
      const attempts = await jobs.history(scope, id, part);
      // Whose input it was is not in the history.
      const record = attempts.some(({ replacedInput }) => isSealed(replacedInput)) ? await jobs.get(scope, id) : undefined;
      const opener = await Opener.of(
        vault,
        attempts.flatMap(({ output, failure, replacedInput }) => [output, failure?.message, replacedInput]),
      );
      return attempts.map((attempt) => openAttempt(opener, attempt, record));
    },
    async logs(scope, id, part) {
      const lines = await jobs.logs(scope, id, part);
      const opener = await Opener.of(
        vault,
        lines.map(({ message }) => message),
      );
      return lines.map((line) => openLine(opener, line, id));
    },
    async whole(scope, page) {
      const found = await jobs.whole(scope, page);
      const opener = await Opener.of(
        vault,
        found.jobs.flatMap(({ history, logs }) => [
          ...history.flatMap(({ output, failure, replacedInput }) => [output, failure?.message, replacedInput]),
          ...logs.map(({ message }) => message),
        ]),
      );
      const records = await openRecords(
        vault,
        found.jobs.map(({ job }) => job),
      );
      return {
        ...found,
        jobs: found.jobs.map(({ job, history, logs }, place) => ({
          job: records[place] as JobRecord,
          history: history.map((attempt) => openAttempt(opener, attempt, job)),
          logs: logs.map((line) => openLine(opener, line, job.id)),
        })),
      };
    },
    async redrive(scope, id, how) {
      if (how.input === undefined) return jobs.redrive(scope, id, how);
      const lane = (await jobs.get(scope, id))?.lane;
      if (lane === undefined) return { kind: "unknown" };
      const sealer = await Sealer.of(vault, [lane.tenant]);
      return jobs.redrive(scope, id, { ...how, input: sealer.seal(how.input, lane.tenant, inputPlace(lane.task, tailOf(id))) });
    },
  };
}

function sealedSeats(seats: Seats, vault: Vault): Seats {
  return {
    of: ({ onHanded, ...options }) =>
      seats.of({
        ...options,
        onHanded: (handed) => void openClaimed(vault, handed.claimed).then((claimed) => onHanded({ ...handed, claimed }), options.onError),
      }),
  };
}

function sealedLeases(leases: LeaseStore, vault: Vault): LeaseStore {
  const opened = async (claimed: Claimed | undefined): Promise<Claimed | undefined> => claimed && openClaimed(vault, claimed);
  return {
    ...leases,
    claim: async (request) => opened(await leases.claim(request)),
    claimSuspect: async (request) => opened(await leases.claimSuspect(request)),
    async claimLimited(request) {
      const answer = await leases.claimLimited(request);
      return { ...answer, claimed: await opened(answer.claimed) };
    },
    async settle(worker, settlements, tx) {
      const telling = settlements.filter(({ patch }) => patch.output !== undefined || secretOf(patch) !== undefined);
      if (telling.length === 0) return leases.settle(worker, settlements, tx);
      const sealer = await Sealer.of(
        vault,
        telling.map(({ lane }) => lane.tenant),
        tx,
      );
      return leases.settle(
        worker,
        settlements.map((item) => sealSettlement(sealer, item)),
        tx,
      );
    },
  };
}

function sealedRecords(records: RecordStore, vault: Vault): RecordStore {
  return {
    ...records,
    async log(worker, entries) {
      const sealer = await Sealer.of(vault, entries.map(tenantOf));
      await records.log(
        worker,
        entries.map((entry) => sealEntry(sealer, entry)),
      );
    },
    async recall(job, name) {
      const value = await records.recall(job, name);
      return value && openEffect(vault, value, job, name);
    },
    async record(worker, entry) {
      const tenant = tenantOf(entry);
      const { job, name } = entry;
      const sealer = await Sealer.of(vault, [tenant]);
      const kept = await records.record(worker, { ...entry, value: sealer.seal(entry.value, tenant, jobPlace("effect", job, name)) });
      return kept === "stale" ? kept : { value: await openEffect(vault, kept.value, job, name) };
    },
  };
}

function tenantOf({ tenant }: { readonly tenant?: string }): string {
  if (tenant === undefined) throw new Error("what is recorded under a lease names no tenant, so there is no key to seal it with");
  return tenant;
}

function sealEntry(sealer: Sealer, entry: LogEntry): LogEntry {
  const { job, level, message, data, ...rest } = entry;
  const tenant = tenantOf(entry);
  if (level === "progress") {
    const text = data ?? JSON.stringify(message);
    return { ...rest, job, level, message: "", data: sealer.seal(text, tenant, jobPlace("progress", job)) };
  }
  return { ...rest, job, level, message: sealer.seal(JSON.stringify({ message, data }), tenant, jobPlace("log", job)) };
}

function openLine(opener: Opener, line: LogLine, job: JobId): LogLine {
  if (!isSealed(line.message)) return line;
  const opened = opener.open(line.message, jobPlace("log", job));
  if ("unreadable" in opened) return { ...line, message: SEALED_VALUE };
  return { ...line, ...(JSON.parse(opened.text) as Pick<LogLine, "message" | "data">) };
}

async function openEffect(vault: Vault, value: string, job: JobId, name: string): Promise<string> {
  const opened = (await Opener.of(vault, [value])).open(value, jobPlace("effect", job, name));
  if ("text" in opened) return opened.text;
  throw pawlError("payload_unreadable", { what: `the recorded effect ${name}`, job, reason: unreadableReason(opened.unreadable) });
}

function sealSettlement(sealer: Sealer, item: Settlement): Settlement {
  const { patch, lane, job } = item;
  const { output } = patch;
  const failure = secretOf(patch);
  if (output === undefined && failure === undefined) return item;
  const { diedOf } = patch;
  return {
    ...item,
    patch: {
      ...patch,
      ...(output === undefined ? {} : { output: sealer.seal(output, lane.tenant, jobPlace("output", job)) }),
      ...(failure === undefined ? {} : { failure: sealer.failure(failure, lane, job) }),
      // It repeats what the attempt failed with, and is there only beside that.
      ...(failure === undefined || diedOf === undefined ? {} : { diedOf: sealer.failure(diedOf, lane, job) }),
    },
  };
}

/** What a failure says may be anybody's data, but for that of a value which did not open: there the key may be missing. */
function secretOf({ failure }: Patch): Failure | undefined {
  return failure?.kind === "unreadable" ? undefined : failure;
}

async function openClaimed(vault: Vault, claimed: Claimed): Promise<Claimed> {
  const opener = await Opener.of(
    vault,
    claimed.jobs.map(({ input }) => input),
  );
  const jobs = claimed.jobs.map((job) => {
    if (job.input === undefined) return job;
    const opened = opener.input(job.input, job);
    return "text" in opened ? { ...job, input: opened.text } : { ...job, unreadable: opened.unreadable };
  });
  return { ...claimed, jobs };
}

async function openRecord(vault: Vault, record: JobRecord): Promise<JobRecord> {
  return (await openRecords(vault, [record]))[0] as JobRecord;
}

async function openRecords(vault: Vault, records: readonly JobRecord[]): Promise<readonly JobRecord[]> {
  const opener = await Opener.of(
    vault,
    records.flatMap(({ input, output, failure, progress }) => [input, output, failure?.message, progress]),
  );
  return records.map((record) => {
    const { id, lane, input, output, failure, progress } = record;
    return {
      ...record,
      input: readable(opener.input(input, record), input),
      ...(output === undefined ? {} : { output: opener.text(output, jobPlace("output", id), lane.tenant) }),
      ...(failure === undefined ? {} : { failure: opener.failure(failure, id) }),
      ...(progress === undefined ? {} : { progress: opener.text(progress, jobPlace("progress", id), lane.tenant) }),
    };
  });
}

/** What cannot be opened stays as it is stored: whoever shows it knows it by its look. */
function readable(opened: Opened, stored: string): string {
  return "text" in opened ? opened.text : stored;
}

function openAttempt(opener: Opener, attempt: AttemptRecord, record: JobRecord | undefined): AttemptRecord {
  const { job, output, failure, replacedInput } = attempt;
  return {
    ...attempt,
    ...(output === undefined ? {} : { output: opener.text(output, jobPlace("output", job)) }),
    ...(failure === undefined ? {} : { failure: opener.failure(failure, job) }),
    ...(replacedInput === undefined || record === undefined ? {} : { replacedInput: readable(opener.input(replacedInput, record), replacedInput) }),
  };
}
