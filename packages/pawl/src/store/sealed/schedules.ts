import type { ScheduleRecord } from "../../core/schedule.js";
import type { SchedulePut, ScheduleStore } from "../port-schedules.js";
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
      records.map(({ definition }) => definition.job.input),
    );
    return records.map((record) => withInput(record, opener.text(record.definition.job.input, placeOf(record), record.tenant)));
  };

  const sealed = async (entry: SchedulePut, sealer: Sealer): Promise<SchedulePut> => {
    const { tenant, name, definition } = entry;
    const stored = await schedules.get({ tenant, name });
    const known = stored && (await opened([stored]))[0];
    const same = stored?.definition.job.lane.task === definition.job.lane.task && known?.definition.job.input === definition.job.input;
    return withInput(entry, same ? (stored as ScheduleRecord).definition.job.input : sealer.seal(definition.job.input, tenant, placeOf(entry)));
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
      if (how.input === undefined) return schedules.trigger(ref, how);
      const record = await schedules.get(ref);
      if (record === undefined) return undefined;
      const sealer = await Sealer.of(vault, [ref.tenant]);
      const { task } = record.definition.job.lane;
      return schedules.trigger(ref, { ...how, input: sealer.seal(how.input, ref.tenant, inputPlace(task, how.tail)) });
    },
  };
}

function placeOf({ name, definition }: Pick<ScheduleRecord, "name" | "definition">) {
  return schedulePlace(definition.job.lane.task, name);
}

function withInput<S extends Pick<ScheduleRecord, "definition">>(of: S, input: string): S {
  return { ...of, definition: { ...of.definition, job: { ...of.definition.job, input } } };
}
