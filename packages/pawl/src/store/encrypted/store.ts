import { ENCRYPTED_VALUE, isEncrypted, undecryptableText } from "../../core/access/encrypted-value.js";
import type { Failure } from "../../core/jobs/failure.js";
import { idSuffixOf, type JobId } from "../../core/jobs/id.js";
import type { AttemptRecord, JobRecord, LogLine } from "../../core/jobs/job.js";
import type { Patch } from "../../core/jobs/outcome.js";
import { pawlError } from "../../core/values/error.js";
import type { DirectHandoff } from "../port/claim/direct-handoff.js";
import type { Store } from "../port/index.js";
import type { JobStore } from "../port/jobs/jobs.js";
import type { Claimed, LeaseStore, Settlement } from "../port/settle/leases.js";
import type { LogEntry, RecordStore } from "../port/settle/records.js";
import { encryptedBatches, encryptedReplies } from "./digests.js";
import { type Decrypted, Decrypter, Encrypter, inputContext, jobContext } from "./encrypter.js";
import { encryptInputs } from "./inputs.js";
import type { KeyStore } from "./key-store.js";
import { encryptedSchedules } from "./schedules.js";
import { encryptedTargets } from "./targets.js";

/**
 * A store in which what jobs hold is encrypted: inputs, outputs, failures, progress, log lines and recorded effects go in
 * encrypted and come out as they were. Everything above it works on the plain values, everything below on encrypted ones. What
 * leaves for an archive (`exportFinished`) stays encrypted, and comes back so.
 */
export function encryptedStore(store: Store, keyStore: KeyStore): Store {
  return {
    ...store,
    get engine() {
      return store.engine;
    },
    jobs: encryptedJobs(store.jobs, keyStore),
    batches: encryptedBatches(store.batches, keyStore),
    replies: encryptedReplies(store.replies, keyStore),
    purges: {
      ...store.purges,
      async rest(tenant, limit) {
        const gone = await store.purges.rest(tenant, limit);
        keyStore.forget(tenant);
        return gone;
      },
    },
    leases: encryptedLeases(store.leases, keyStore),
    ...(store.handoff === undefined ? {} : { handoff: encryptedHandoff(store.handoff, keyStore) }),
    records: encryptedRecords(store.records, keyStore),
    schedules: encryptedSchedules(store.schedules, keyStore),
    targets: encryptedTargets(store.targets, keyStore),
    dead: {
      async groups(scope, filter, limit) {
        const groups = await store.dead.groups(scope, filter, limit);
        const samples = await decryptRecords(
          keyStore,
          groups.map(({ sample }) => sample),
        );
        return groups.map((group, index) => ({ ...group, sample: samples[index] as JobRecord }));
      },
    },
    explain: {
      ...store.explain,
      async look(scope, id) {
        const look = await store.explain.look(scope, id);
        return look && { ...look, job: await decryptRecord(keyStore, look.job) };
      },
    },
  };
}

function encryptedJobs(jobs: JobStore, keyStore: KeyStore): JobStore {
  return {
    ...jobs,
    enqueue: async (batch, tx) => jobs.enqueue(await encryptInputs(keyStore, batch, tx), tx),
    async get(scope, id) {
      const record = await jobs.get(scope, id);
      return record && decryptRecord(keyStore, record);
    },
    async list(scope, filter, page) {
      const found = await jobs.list(scope, filter, page);
      return { ...found, jobs: await decryptRecords(keyStore, found.jobs) };
    },
    async history(scope, id, part) {
      const attempts = await jobs.history(scope, id, part);
      // Whose input it was is not in the history.
      const record = attempts.some(({ replacedInput }) => isEncrypted(replacedInput)) ? await jobs.get(scope, id) : undefined;
      const decrypter = await Decrypter.of(
        keyStore,
        attempts.flatMap(({ output, failure, replacedInput }) => [output, failure?.message, replacedInput]),
      );
      return attempts.map((attempt) => decryptAttempt(decrypter, attempt, record));
    },
    async logs(scope, id, part) {
      const lines = await jobs.logs(scope, id, part);
      const decrypter = await Decrypter.of(
        keyStore,
        lines.map(({ message }) => message),
      );
      return lines.map((line) => decryptLine(decrypter, line, id));
    },
    async whole(scope, page) {
      const found = await jobs.whole(scope, page);
      const decrypter = await Decrypter.of(
        keyStore,
        found.jobs.flatMap(({ history, logs }) => [
          ...history.flatMap(({ output, failure, replacedInput }) => [output, failure?.message, replacedInput]),
          ...logs.map(({ message }) => message),
        ]),
      );
      const records = await decryptRecords(
        keyStore,
        found.jobs.map(({ job }) => job),
      );
      return {
        ...found,
        jobs: found.jobs.map(({ job, history, logs }, index) => ({
          job: records[index] as JobRecord,
          history: history.map((attempt) => decryptAttempt(decrypter, attempt, job)),
          logs: logs.map((line) => decryptLine(decrypter, line, job.id)),
        })),
      };
    },
    async redrive(scope, id, how) {
      if (how.input === undefined) return jobs.redrive(scope, id, how);
      const lane = (await jobs.get(scope, id))?.lane;
      if (lane === undefined) return { kind: "unknown" };
      const encrypter = await Encrypter.of(keyStore, [lane.tenant]);
      return jobs.redrive(scope, id, { ...how, input: encrypter.encrypt(how.input, lane.tenant, inputContext(lane.task, idSuffixOf(id))) });
    },
  };
}

function encryptedHandoff(idleWorkers: DirectHandoff, keyStore: KeyStore): DirectHandoff {
  return {
    of: ({ onHandoff, ...options }) =>
      idleWorkers.of({
        ...options,
        onHandoff: (handed) => void decryptClaimed(keyStore, handed.claimed).then((claimed) => onHandoff({ ...handed, claimed }), options.onError),
      }),
  };
}

function encryptedLeases(leases: LeaseStore, keyStore: KeyStore): LeaseStore {
  const decrypted = async (claimed: Claimed | undefined): Promise<Claimed | undefined> => claimed && decryptClaimed(keyStore, claimed);
  return {
    ...leases,
    claim: async (request) => decrypted(await leases.claim(request)),
    claimSuspect: async (request) => decrypted(await leases.claimSuspect(request)),
    async claimLimited(request) {
      const answer = await leases.claimLimited(request);
      return { ...answer, claimed: await decrypted(answer.claimed) };
    },
    async settle(worker, settlements, tx) {
      const telling = settlements.filter(({ patch }) => patch.output !== undefined || secretOf(patch) !== undefined);
      if (telling.length === 0) return leases.settle(worker, settlements, tx);
      const encrypter = await Encrypter.of(
        keyStore,
        telling.map(({ lane }) => lane.tenant),
        tx,
      );
      return leases.settle(
        worker,
        settlements.map((item) => encryptSettlement(encrypter, item)),
        tx,
      );
    },
  };
}

function encryptedRecords(records: RecordStore, keyStore: KeyStore): RecordStore {
  return {
    ...records,
    async log(worker, entries) {
      const encrypter = await Encrypter.of(keyStore, entries.map(tenantOf));
      await records.log(
        worker,
        entries.map((entry) => encryptEntry(encrypter, entry)),
      );
    },
    async recall(job, name) {
      const value = await records.recall(job, name);
      return value && decryptEffect(keyStore, value, job, name);
    },
    async record(worker, entry) {
      const tenant = tenantOf(entry);
      const { job, name } = entry;
      const encrypter = await Encrypter.of(keyStore, [tenant]);
      const kept = await records.record(worker, { ...entry, value: encrypter.encrypt(entry.value, tenant, jobContext("effect", job, name)) });
      return kept === "stale" ? kept : { value: await decryptEffect(keyStore, kept.value, job, name) };
    },
  };
}

function tenantOf({ tenant }: { readonly tenant?: string }): string {
  if (tenant === undefined) throw new Error("what is recorded under a lease names no tenant, so there is no key to encrypt it with");
  return tenant;
}

function encryptEntry(encrypter: Encrypter, entry: LogEntry): LogEntry {
  const { job, level, message, data, ...rest } = entry;
  const tenant = tenantOf(entry);
  if (level === "progress") {
    const text = data ?? JSON.stringify(message);
    return { ...rest, job, level, message: "", data: encrypter.encrypt(text, tenant, jobContext("progress", job)) };
  }
  return { ...rest, job, level, message: encrypter.encrypt(JSON.stringify({ message, data }), tenant, jobContext("log", job)) };
}

function decryptLine(decrypter: Decrypter, line: LogLine, job: JobId): LogLine {
  if (!isEncrypted(line.message)) return line;
  const decrypted = decrypter.decrypt(line.message, jobContext("log", job));
  if ("unreadable" in decrypted) return { ...line, message: ENCRYPTED_VALUE };
  return { ...line, ...(JSON.parse(decrypted.text) as Pick<LogLine, "message" | "data">) };
}

async function decryptEffect(keyStore: KeyStore, value: string, job: JobId, name: string): Promise<string> {
  const decrypted = (await Decrypter.of(keyStore, [value])).decrypt(value, jobContext("effect", job, name));
  if ("text" in decrypted) return decrypted.text;
  throw pawlError("payload_undecryptable", { what: `the recorded effect ${name}`, job, reason: undecryptableText(decrypted.unreadable) });
}

function encryptSettlement(encrypter: Encrypter, item: Settlement): Settlement {
  const { patch, lane, job } = item;
  const { output } = patch;
  const failure = secretOf(patch);
  if (output === undefined && failure === undefined) return item;
  const { diedOf } = patch;
  return {
    ...item,
    patch: {
      ...patch,
      ...(output === undefined ? {} : { output: encrypter.encrypt(output, lane.tenant, jobContext("output", job)) }),
      ...(failure === undefined ? {} : { failure: encrypter.failure(failure, lane, job) }),
      // It repeats what the attempt failed with, and is there only beside that.
      ...(failure === undefined || diedOf === undefined ? {} : { diedOf: encrypter.failure(diedOf, lane, job) }),
    },
  };
}

/** What a failure says may be anybody's data, but for that of a value which did not open: there the key may be missing. */
function secretOf({ failure }: Patch): Failure | undefined {
  return failure?.kind === "payload_undecryptable" ? undefined : failure;
}

async function decryptClaimed(keyStore: KeyStore, claimed: Claimed): Promise<Claimed> {
  const decrypter = await Decrypter.of(
    keyStore,
    claimed.jobs.map(({ input }) => input),
  );
  const jobs = claimed.jobs.map((job) => {
    if (job.input === undefined) return job;
    const decrypted = decrypter.input(job.input, job);
    return "text" in decrypted ? { ...job, input: decrypted.text } : { ...job, unreadable: decrypted.unreadable };
  });
  return { ...claimed, jobs };
}

async function decryptRecord(keyStore: KeyStore, record: JobRecord): Promise<JobRecord> {
  return (await decryptRecords(keyStore, [record]))[0] as JobRecord;
}

async function decryptRecords(keyStore: KeyStore, records: readonly JobRecord[]): Promise<readonly JobRecord[]> {
  const decrypter = await Decrypter.of(
    keyStore,
    records.flatMap(({ input, output, failure, progress }) => [input, output, failure?.message, progress]),
  );
  return records.map((record) => {
    const { id, lane, input, output, failure, progress } = record;
    return {
      ...record,
      input: readable(decrypter.input(input, record), input),
      ...(output === undefined ? {} : { output: decrypter.text(output, jobContext("output", id), lane.tenant) }),
      ...(failure === undefined ? {} : { failure: decrypter.failure(failure, id) }),
      ...(progress === undefined ? {} : { progress: decrypter.text(progress, jobContext("progress", id), lane.tenant) }),
    };
  });
}

/** What cannot be opened stays as it is stored: whoever shows it knows it by its look. */
function readable(decrypted: Decrypted, stored: string): string {
  return "text" in decrypted ? decrypted.text : stored;
}

function decryptAttempt(decrypter: Decrypter, attempt: AttemptRecord, record: JobRecord | undefined): AttemptRecord {
  const { job, output, failure, replacedInput } = attempt;
  return {
    ...attempt,
    ...(output === undefined ? {} : { output: decrypter.text(output, jobContext("output", job)) }),
    ...(failure === undefined ? {} : { failure: decrypter.failure(failure, job) }),
    ...(replacedInput === undefined || record === undefined
      ? {}
      : { replacedInput: readable(decrypter.input(replacedInput, record), replacedInput) }),
  };
}
