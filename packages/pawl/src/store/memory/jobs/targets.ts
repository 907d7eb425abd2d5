import { MAX_TARGETS, type TargetRecord, type TargetRef, type TargetSecret, targetKey } from "../../../core/access/push-target.js";
import { compareText } from "../../../core/jobs/lane.js";
import type { TargetStore } from "../../port/jobs/targets.js";
import type { Tables } from "../state.js";

export interface MemoryTarget {
  facts: TargetRecord;
  /** newest first: one that is good, and one that is good until its time */
  secrets: readonly TargetSecret[];
}

export function memoryTargets(tables: Tables): TargetStore {
  const rows = tables.targets;
  const sorted = () => [...rows.values()].sort((a, b) => compareTargets(a.facts, b.facts));
  const changed = () => {
    tables.policyVersion += 1;
    tables.wakeups.lanes = true;
  };

  return {
    put: ({ secret, ...target }) =>
      tables.step(() => {
        const existing = rows.get(targetKey(target));
        if (existing !== undefined) {
          if (isSame(existing.facts, target)) return { kind: "kept", target: existing.facts };
          existing.facts = { ...target, createdAt: existing.facts.createdAt, changedAt: tables.now };
          changed();
          return { kind: "kept", target: existing.facts };
        }
        const own = [...rows.values()].filter(({ facts }) => facts.tenant === target.tenant).length;
        if (own >= MAX_TARGETS.ofTenant) return { kind: "full", most: MAX_TARGETS.ofTenant };
        if (rows.size >= MAX_TARGETS.ofAll) return { kind: "full", most: MAX_TARGETS.ofAll };
        const facts = { ...target, createdAt: tables.now, changedAt: tables.now };
        rows.set(targetKey(target), { facts, secrets: [{ text: secret }] });
        changed();
        return { kind: "created", target: facts };
      }),

    get: (scope, ref) => tables.step(() => (scope === "everyone" || scope.tenant === ref.tenant ? rows.get(targetKey(ref))?.facts : undefined)),

    list: (scope, { limit, after }) =>
      tables.step(() =>
        sorted()
          .map(({ facts }) => facts)
          .filter((facts) => scope === "everyone" || facts.tenant === scope.tenant)
          .filter((facts) => after === undefined || compareTargets(facts, after) > 0)
          .slice(0, limit),
      ),

    rotate: (ref, { secret, keepOldFor }) =>
      tables.step(() => {
        const row = rows.get(targetKey(ref));
        const [newest] = row?.secrets ?? [];
        if (row === undefined || newest === undefined || newest.text === secret) return row?.facts;
        row.secrets = [{ text: secret }, { text: newest.text, until: tables.now + keepOldFor }];
        changed();
        return row.facts;
      }),

    delete: (ref) =>
      tables.step(() => {
        const there = rows.delete(targetKey(ref));
        if (there) changed();
        return there;
      }),

    gone: (ref, url) =>
      tables.step(() => {
        const row = rows.get(targetKey(ref));
        if (row === undefined || row.facts.url !== url || row.facts.goneAt !== undefined) return;
        row.facts = { ...row.facts, goneAt: tables.now };
        changed();
      }),

    open: (limit) =>
      tables.step(() => ({
        now: tables.now,
        targets: sorted()
          .filter(({ facts }) => facts.goneAt === undefined)
          .slice(0, limit)
          .map(({ facts, secrets }) => ({
            ...facts,
            secrets: secrets.filter(({ until }) => until === undefined || until > tables.now),
          })),
      })),
  };
}

function compareTargets(a: TargetRef, b: TargetRef): number {
  return compareText(a.tenant, b.tenant) || compareText(a.task, b.task);
}

/** One that was gone is put to be wanted again. */
function isSame(existing: TargetRecord, { url, concurrency, timeout }: Pick<TargetRecord, "url" | "concurrency" | "timeout">): boolean {
  return existing.url === url && existing.concurrency === concurrency && existing.timeout === timeout && existing.goneAt === undefined;
}
