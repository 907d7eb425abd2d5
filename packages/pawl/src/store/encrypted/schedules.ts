import type { Definition, ScheduleRecord, ScheduleRef } from "../../core/schedules/schedule.js";
import type { SchedulePut, ScheduleStore } from "../port/schedules/schedules.js";
import { Decrypter, Encrypter, inputContext, scheduleContext } from "./encrypter.js";
import { encryptRequest } from "./inputs.js";
import type { KeyStore } from "./key-store.js";

/**
 * The input of a schedule is encrypted for the schedule, since its store gives it to every job as it stands. One that is put
 * again with the same input keeps the encrypted text it has: by another one it would be changed, and begin anew.
 */
export function encryptedSchedules(schedules: ScheduleStore, keyStore: KeyStore): ScheduleStore {
  const decrypted = async (records: readonly ScheduleRecord[]): Promise<readonly ScheduleRecord[]> => {
    const decrypter = await Decrypter.of(
      keyStore,
      records.flatMap(definitionsOf).map(({ job }) => job.input),
    );
    return records.map((record) => {
      const open = (definition: Definition) =>
        withInput(definition, decrypter.text(definition.job.input, contextOf(record, definition), record.tenant));
      const { definition, declared } = record;
      return { ...record, definition: open(definition), ...(declared === undefined ? {} : { declared: open(declared) }) };
    });
  };

  const encrypted = async (entry: SchedulePut, encrypter: Encrypter): Promise<SchedulePut> => {
    const { tenant, name, definition } = entry;
    const stored = await schedules.get({ tenant, name });
    const definitions = stored === undefined ? [] : (await decrypted([stored])).flatMap(definitionsOf);
    const same = definitions.findIndex(({ job }) => job.lane.task === definition.job.lane.task && job.input === definition.job.input);
    const before = stored && definitionsOf(stored)[same];
    return {
      ...entry,
      definition: withInput(definition, before?.job.input ?? encrypter.encrypt(definition.job.input, tenant, contextOf(entry, definition))),
    };
  };

  return {
    ...schedules,
    async put(entries, app) {
      const encrypter = await Encrypter.of(
        keyStore,
        entries.map(({ tenant }) => tenant),
      );
      return schedules.put(await Promise.all(entries.map((entry) => encrypted(entry, encrypter))), app);
    },
    async get(ref) {
      const record = await schedules.get(ref);
      return record && (await decrypted([record]))[0];
    },
    async list(scope, filter, page) {
      const found = await schedules.list(scope, filter, page);
      return { ...found, schedules: await decrypted(found.schedules) };
    },
    async trigger(ref, how) {
      const { input, idempotencyKey } = how;
      const keyed = idempotencyKey === undefined ? how : { ...how, idempotencyKey: await encryptRequest(keyStore, ref.tenant, idempotencyKey) };
      if (input === undefined) return schedules.trigger(ref, keyed);
      const record = await schedules.get(ref);
      if (record === undefined) return undefined;
      const encrypter = await Encrypter.of(keyStore, [ref.tenant]);
      const { task } = record.definition.job.lane;
      return schedules.trigger(ref, { ...keyed, input: encrypter.encrypt(input, ref.tenant, inputContext(task, how.idSuffix)) });
    },
  };
}

/** What it is, and what its code says, if that is something else. */
function definitionsOf({ definition, declared }: ScheduleRecord): readonly Definition[] {
  return declared === undefined ? [definition] : [definition, declared];
}

function contextOf({ name }: ScheduleRef, { job }: Definition) {
  return scheduleContext(job.lane.task, name);
}

function withInput(definition: Definition, input: string): Definition {
  return { ...definition, job: { ...definition.job, input } };
}
