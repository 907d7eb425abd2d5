import type { CheckupStore } from "../../port/observe/checkup.js";
import type { Tables } from "../state.js";

/** There is nothing here to bloat, to pin or to be deaf. */
export function memoryCheckup(tables: Tables): CheckupStore {
  return {
    look: () =>
      tables.step(() => {
        const expired = [...tables.leases.values()].filter(({ until }) => until <= tables.now);
        return {
          now: tables.now,
          pins: [],
          tables: [],
          missingMonths: [],
          expired: {
            leases: expired.length,
            jobs: expired.reduce((sum, { open }) => sum + open.size, 0),
            longest: Math.max(0, ...expired.map(({ until }) => tables.now - until)),
          },
          hears: true,
        };
      }),
  };
}
