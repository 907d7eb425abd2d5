import type { Schedules } from "../contract/child.ts";
import type { PlannedSchedule } from "../contract/system.ts";
import { scattered } from "./jobs.ts";

/** The schedules a command asks for. Those that are due then come first, by number. */
export function plannedSchedules({ count, at, when }: Schedules): readonly PlannedSchedule[] {
  if (when === "everywhere") return everywhere(count, at);
  return Array.from({ length: count }, (_, n) => {
    const due = when === "at once" ? at : Math.round(at + scattered(n) * when.over);
    return { tenant: tenantOf(n), input: { n, due }, times: { every: "1d", start: due } };
  });
}

/** How many of them are due in the stretch that the command is about. */
export function dueOf(schedules: readonly PlannedSchedule[]): number {
  return schedules.filter(({ input }) => input.due !== undefined).length;
}

/**
 * One time of day in every zone, as midnight is: the one that most zones have at that instant. They are the ones that
 * meet; the others have theirs at another hour.
 */
function everywhere(count: number, at: number): readonly PlannedSchedule[] {
  const zones = Intl.supportedValuesOf("timeZone").map((timeZone) => ({ timeZone, shown: timeOfDay(timeZone, at) }));
  const byTime = new Map<string, number>();
  for (const { shown } of zones) byTime.set(shown, (byTime.get(shown) ?? 0) + 1);
  const [busiest] = [...byTime].sort(([, a], [, b]) => b - a)[0] as [string, number];
  const [hour, minute] = busiest.split(":").map(Number);
  const all = Array.from({ length: count }, (_, n) => zones[n % zones.length] as (typeof zones)[number]);
  const due = all.filter(({ shown }) => shown === busiest);
  const others = all.filter(({ shown }) => shown !== busiest);
  return [...due, ...others].map(({ timeZone, shown }, n) => ({
    tenant: tenantOf(n),
    input: shown === busiest ? { n, due: at } : { n },
    times: { cron: `${minute} ${hour} * * *`, timeZone },
  }));
}

function timeOfDay(timeZone: string, at: number): string {
  return new Intl.DateTimeFormat("en-GB", { timeZone, hour: "2-digit", minute: "2-digit", hourCycle: "h23" }).format(at);
}

function tenantOf(n: number): string {
  return `tenant-${n}`;
}
