import type { DutyDeclaration, DutyReport, DutyRequest, DutyStore } from "./duties.js";

/** One duty of a store: how it is declared, and its step. */
export interface StoreDuty extends Omit<DutyDeclaration, "name"> {
  readonly step: (request: DutyRequest) => Promise<DutyReport>;
}

/** The part of a store's duties that needs no poll. */
export type PeriodicDuties = Pick<DutyStore, "declared" | "run">;

/** Duties by name, as the port wants them. */
export function dutiesFrom(duties: Readonly<Record<string, StoreDuty>>): PeriodicDuties {
  return {
    declared: Object.entries(duties).map(([name, { dueBy, maxLimit }]) => ({ name, dueBy, ...(maxLimit === undefined ? {} : { maxLimit }) })),
    async run(duty, request) {
      const found = duties[duty];
      if (found === undefined) throw new Error(`this store has no duty "${duty}"`);
      return found.step(request);
    },
  };
}

/** The duties of an engine, and those of a service store. */
export function joinDuties(engine: DutyStore, service: PeriodicDuties): DutyStore {
  const own = new Set(service.declared.map(({ name }) => name));
  return {
    declared: [...engine.declared, ...service.declared],
    poll: () => engine.poll(),
    run: (duty, request) => (own.has(duty) ? service : engine).run(duty, request),
  };
}

/** The report of a step that handled `handled` of up to `limit`: a full batch means that there may be more. */
export function stepReport(count: number, limit: number, handled = count): DutyReport {
  return { count, more: handled > 0 && handled >= limit };
}
