import { expect } from "vitest";
import { type AuditNote, ChainCheck, canonical, entryOf, GENESIS } from "../../src/core/access/audit-entry.js";
import { sha256 } from "../../src/runtime/io/digest.js";
import type { Test } from "../suite.js";
import { START, type World } from "../world.js";

function note(n: number, more: Partial<AuditNote> = {}): AuditNote {
  const id = `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;
  return { id, tenant: "acme", actor: "key:a", action: "jobs.control", outcome: "allowed", ...more };
}

async function whole(w: World, tenant: string | undefined = "acme") {
  return w.store.audit.read(tenant, { after: 0, limit: 1_000 });
}

export function auditTests(test: Test): void {
  test("entries form a chain from the first one on, each with the hash of the one before", async (w) => {
    const first = await w.store.audit.record(note(1, { subject: "job:1", details: { b: 1, a: `ü "quoted" \\ \n\u001b[31m` } }));
    expect(first).toMatchObject({ seq: 1, at: START, prev: GENESIS });
    w.clock.advance(5);
    const second = await w.store.audit.record(note(2, { outcome: "denied", address: "192.0.2.1", request: "r-1" }));
    expect(second).toMatchObject({ seq: 2, at: START + 5, prev: first.hash });
    const check = new ChainCheck("acme", sha256);
    const entries = await whole(w);
    for (const entry of entries) expect(check.follow(entry)).toBeUndefined();
    expect([check.seq, check.head]).toEqual([2, second.hash]);
    expect(entries.map(({ body }) => body)).toEqual([
      canonical(note(1, { subject: "job:1", details: { b: 1, a: `ü "quoted" \\ \n\u001b[31m` } })),
      canonical(note(2, { outcome: "denied", address: "192.0.2.1", request: "r-1" })),
    ]);
    expect(await w.store.audit.heads()).toEqual([{ tenant: "acme", seq: 2, at: START + 5, hash: second.hash }]);
  });

  test("the same note again is the same entry", async (w) => {
    const first = await w.store.audit.record(note(1));
    await w.store.audit.record(note(2));
    w.clock.advance(1_000);
    expect(await w.store.audit.record(note(1))).toEqual(first);
    expect(await whole(w)).toHaveLength(2);
    expect(await w.store.audit.heads()).toMatchObject([{ seq: 2 }]);
  });

  test("every tenant has a chain of its own, and so does the store as a whole", async (w) => {
    await w.store.audit.record(note(1));
    await w.store.audit.record(note(1, { tenant: "umbrella" }));
    await w.store.audit.record(note(2, { tenant: "umbrella" }));
    await w.store.audit.record(note(1, { tenant: undefined }));
    const heads = await w.store.audit.heads();
    expect(Object.fromEntries(heads.map(({ tenant, seq }) => [tenant ?? "(all)", seq]))).toEqual({ acme: 1, umbrella: 2, "(all)": 1 });
    for (const { tenant } of heads) {
      const check = new ChainCheck(tenant, sha256);
      for (const entry of await w.store.audit.read(tenant, { after: 0, limit: 10 })) expect(check.follow(entry)).toBeUndefined();
    }
    expect(await w.store.audit.list("nobody", {}, { limit: 10 })).toEqual([]);
  });

  test("a clock that goes back does not take the times of a chain with it", async (w) => {
    await w.store.audit.record(note(1));
    w.clock.advance(-1_000);
    expect(await w.store.audit.record(note(2))).toMatchObject({ seq: 2, at: START });
    w.clock.advance(2_000);
    expect(await w.store.audit.record(note(3))).toMatchObject({ seq: 3, at: START + 1_000 });
  });

  test("entries are listed newest first, by who, what, of what, whether and when, page by page", async (w) => {
    const many: readonly Partial<AuditNote>[] = [
      { actor: "key:a" },
      { actor: "key:b", subject: "job:1" },
      { actor: "key:a", action: "apiKeys.write" },
      { actor: "anonymous", outcome: "denied" },
      { actor: "key:a", subject: "job:1" },
    ];
    for (const [n, more] of many.entries()) {
      await w.store.audit.record(note(n, more));
      w.clock.advance(10);
    }
    const seqs = async (filter: Parameters<World["store"]["audit"]["list"]>[1], before?: number, limit = 10) =>
      (await w.store.audit.list("acme", filter, { limit, ...(before === undefined ? {} : { before }) })).map(({ seq }) => seq);
    expect(await seqs({})).toEqual([5, 4, 3, 2, 1]);
    expect(await seqs({}, undefined, 2)).toEqual([5, 4]);
    expect(await seqs({}, 4, 2)).toEqual([3, 2]);
    expect(await seqs({ actor: "key:a" })).toEqual([5, 3, 1]);
    expect(await seqs({ actor: "key:a", subject: "job:1" })).toEqual([5]);
    expect(await seqs({ action: "apiKeys.write" })).toEqual([3]);
    expect(await seqs({ outcome: "denied" })).toEqual([4]);
    expect(await seqs({ since: START + 10, until: START + 30 })).toEqual([3, 2]);
    const [found] = await w.store.audit.list("acme", { action: "apiKeys.write" }, { limit: 1 });
    expect(found && entryOf(found)).toMatchObject({ ...note(2, many[2]), seq: 3, at: START + 20 });
  });

  test("a chain is read oldest first, page by page", async (w) => {
    for (let n = 1; n <= 5; n++) await w.store.audit.record(note(n));
    const seqs = async (after: number) => (await w.store.audit.read("acme", { after, limit: 2 })).map(({ seq }) => seq);
    expect([await seqs(0), await seqs(2), await seqs(4), await seqs(5)]).toEqual([[1, 2], [3, 4], [5], []]);
  });
}
