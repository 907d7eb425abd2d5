import type { Definition, ScheduleRecord, ScheduleRef } from "../../core/schedule.js";
import type { SchedulePut, ScheduleStore } from "../port-schedules.js";
import { sealRequest } from "./inputs.js";
import { inputPlace, Opener, Sealer, schedulePlace } from "./sealer.js";
import type { Vault } from "./vault.js";

/**
 * The input of a schedule is sealed for the schedule, since its store gives it to every job as it stands. One that is put
 * again with the same input keeps the sealed text it has: by another one it would be changed, and begin anew.
 */
export function sealedSchedules(schedules: ScheduleStore, vault: Vault): ScheduleStore {
  const opened = async (records: readonly ScheduleRecord[]): Promise<readonly ScheduleRecord[]> => {
    const opener = await Opener.of(
      vault,
      records.flatMap(definitionsOf).map(({ job }) => job.input),
    );
    return records.map((record) => {
      const open = (definition: Definition) => withInput(definition, opener.text(definition.job.input, placeOf(record, definition), record.tenant));
      const { definition, declared } = record;
      return { ...record, definition: open(definition), ...(declared === undefined ? {} : { declared: open(declared) }) };
    });
  };

  const sealed = async (entry: SchedulePut, sealer: Sealer): Promise<SchedulePut> => {
    const { tenant, name, definition } = entry;
    const stored = await schedules.get({ tenant, name });
    const known = stored === undefined ? [] : (await opened([stored])).flatMap(definitionsOf);
    const same = known.findIndex(({ job }) => job.lane.task === definition.job.lane.task && job.input === definition.job.input);
    const before = stored && definitionsOf(stored)[same];
    return {
      ...entry,
      definition: withInput(definition, before?.job.input ?? sealer.seal(definition.job.input, tenant, placeOf(entry, definition))),
    };
  };

  return {
    ...schedules,
    async put(entries, app) {
      const sealer = await Sealer.of(
        vault,
        entries.map(({ tenant }) => tenant),
      );
      return schedules.put(await Promise.all(entries.map((entry) => sealed(entry, sealer))), app);
    },
    async get(ref) {
      const record = await schedules.get(ref);
      return record && (await opened([record]))[0];
    },
    async list(scope, filter, page) {
      const found = await schedules.list(scope, filter, page);
      return { ...found, schedules: await opened(found.schedules) };
    },
    async trigger(ref, how) {
      const { input, request } = how;
      const keyed = request === undefined ? how : { ...how, request: await sealRequest(vault, ref.tenant, request) };
      if (input === undefined) return schedules.trigger(ref, keyed);
      const record = await schedules.get(ref);
      if (record === undefined) return undefined;
      const sealer = await Sealer.of(vault, [ref.tenant]);
      const { task } = record.definition.job.lane;
      return schedules.trigger(ref, { ...keyed, input: sealer.seal(input, ref.tenant, inputPlace(task, how.tail)) });
    },
  };
}

/** What it is, and what its code says, if that is something else. */
function definitionsOf({ definition, declared }: ScheduleRecord): readonly Definition[] {
  return declared === undefined ? [definition] : [definition, declared];
}

function placeOf({ name }: ScheduleRef, { job }: Definition) {
  return schedulePlace(job.lane.task, name);
}

function withInput(definition: Definition, input: string): Definition {
  return { ...definition, job: { ...definition.job, input } };
}
