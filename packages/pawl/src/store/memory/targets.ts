import { compareText } from "../../core/lane.js";
import { MOST_TARGETS, type TargetFacts, type TargetRef, type TargetSecret, targetKey } from "../../core/target.js";
import type { TargetStore } from "../port-targets.js";
import type { Tables } from "./state.js";

export interface TargetRow {
  facts: TargetFacts;
  /** newest first: one that is good, and one that is good until its time */
  secrets: readonly TargetSecret[];
}

export function memoryTargets(tables: Tables): TargetStore {
  const rows = tables.targets;
  const sorted = () => [...rows.values()].sort((a, b) => compareTargets(a.facts, b.facts));
  const changed = () => {
    tables.policyMark += 1;
    tables.hints.lanes = true;
  };

  return {
    put: ({ secret, ...given }) =>
      tables.step(() => {
        const known = rows.get(targetKey(given));
        if (known !== undefined) {
          if (isSame(known.facts, given)) return { kind: "kept", target: known.facts };
          known.facts = { ...given, createdAt: known.facts.createdAt, changedAt: tables.now };
          changed();
          return { kind: "kept", target: known.facts };
        }
        const own = [...rows.values()].filter(({ facts }) => facts.tenant === given.tenant).length;
        if (own >= MOST_TARGETS.ofTenant) return { kind: "full", most: MOST_TARGETS.ofTenant };
        if (rows.size >= MOST_TARGETS.ofAll) return { kind: "full", most: MOST_TARGETS.ofAll };
        const facts = { ...given, createdAt: tables.now, changedAt: tables.now };
        rows.set(targetKey(given), { facts, secrets: [{ text: secret }] });
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

    rotate: (ref, { secret, overlap }) =>
      tables.step(() => {
        const row = rows.get(targetKey(ref));
        const [newest] = row?.secrets ?? [];
        if (row === undefined || newest === undefined || newest.text === secret) return row?.facts;
        row.secrets = [{ text: secret }, { text: newest.text, until: tables.now + overlap }];
        changed();
        return row.facts;
      }),

    remove: (ref) =>
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
function isSame(known: TargetFacts, { url, concurrency, timeout }: Pick<TargetFacts, "url" | "concurrency" | "timeout">): boolean {
  return known.url === url && known.concurrency === concurrency && known.timeout === timeout && known.goneAt === undefined;
}
