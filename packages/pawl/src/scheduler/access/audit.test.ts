import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { StoredEntry } from "../../core/access/audit-entry.js";
import { serviceOf } from "../../service-of.js";
import type { AuditHead } from "../../store/port/access/audit.js";
import type { Store } from "../../store/port/index.js";
import { wrapStore } from "../../store/wrap/wrap-store.js";
import { openTest, type TestPawl } from "../../testing/open.js";
import { type AnchoredHead, createAudit, type NewAudit } from "./audit.js";

const ENTRY: NewAudit = { tenant: "acme", actor: "key:a", action: "jobs.control", outcome: "allowed", subject: "job:1" };

let world: TestPawl;
let store: Store;
beforeEach(async () => {
  world = await openTest({
    work: false,
    maintenance: false,
    wrapStore(inner) {
      store = inner;
      return inner;
    },
  });
});
afterEach(() => world.close());

async function fill(count: number, more: Partial<NewAudit> = {}): Promise<void> {
  for (let n = 0; n < count; n++) {
    await serviceOf(world.pawl).audit.record({ ...ENTRY, subject: `job:${n}`, ...more });
    await world.clock.advance(1);
  }
}

/** The log as somebody with the database's password may have left it. */
function tampered(change: (chain: readonly StoredEntry[]) => readonly StoredEntry[], heads?: (heads: readonly AuditHead[]) => readonly AuditHead[]) {
  const { audit } = store;
  const other: Store["audit"] = {
    ...audit,
    async read(tenant, { after, limit }) {
      const chain = tenant === "acme" ? change(await audit.read(tenant, { after: 0, limit: 10_000 })) : [];
      return chain.filter(({ seq }) => seq > after).slice(0, limit);
    },
    heads: async () => (heads ?? ((all) => all))(await audit.heads()),
  };
  return createAudit({ ...wrapStore(store, (_, call) => call()), audit: other });
}

const edit = (at: number, change: Partial<StoredEntry>) => (chain: readonly StoredEntry[]) =>
  chain.map((entry) => (entry.seq === at ? { ...entry, ...change } : entry));
const body = async (at: number) => ((await store.audit.read("acme", { after: at - 1, limit: 1 }))[0] as StoredEntry).body;

describe("the audit log", () => {
  test("tells who did what to what, when and from where, newest first", async () => {
    const link = await serviceOf(world.pawl).audit.record({ ...ENTRY, address: "192.0.2.1", request: "r-1", details: { verb: "cancel", count: 2 } });
    expect(link.seq).toBe(1);
    await fill(2, { actor: "key:b" });
    const { items: entries, next } = await serviceOf(world.pawl).audit.list({ tenant: "acme" }, { limit: 2 });
    expect(entries.map(({ seq, actor }) => [seq, actor])).toEqual([
      [3, "key:b"],
      [2, "key:b"],
    ]);
    const rest = await serviceOf(world.pawl).audit.list({ tenant: "acme" }, { limit: 2, cursor: next as string });
    expect(rest.next).toBeUndefined();
    expect(rest.items[0]).toMatchObject({ ...ENTRY, seq: 1, address: "192.0.2.1", request: "r-1", details: { verb: "cancel", count: 2 } });
    expect(rest.items[0]?.at).toBeInstanceOf(Date);
    expect((await serviceOf(world.pawl).audit.list({ tenant: "acme", actor: "key:a", since: new Date(0) })).items).toHaveLength(1);
    expect((await serviceOf(world.pawl).audit.list()).items, "the store's own chain").toEqual([]);
  });

  test("is whole after a thousand and one entries in two chains", async () => {
    await fill(1_001);
    await fill(1, { tenant: undefined });
    expect(await serviceOf(world.pawl).audit.verify()).toEqual({ ok: true, chains: 2, entries: 1_002, faults: [], caveat: expect.any(String) });
  });

  test("takes what strangers send for text, however long or hostile, and one line of it (S73)", async () => {
    const hostile = `\r\n{"fake":"entry"}\u001b[31m\u0000\ud800 ${"x".repeat(10_000)}`;
    await serviceOf(world.pawl).audit.record({ ...ENTRY, actor: hostile, subject: hostile, details: { [hostile]: hostile } });
    const [stored] = await store.audit.read("acme", { after: 0, limit: 1 });
    for (const control of ["\r", "\n", "\u0000", "\u001b"]) expect(stored?.body).not.toContain(control);
    expect(stored?.body.length).toBeLessThan(4_000);
    expect((await serviceOf(world.pawl).audit.verify()).ok).toBe(true);
  });

  test("refuses what is no entry", async () => {
    const bad: readonly unknown[] = [
      { ...ENTRY, outcome: "maybe" },
      { ...ENTRY, actor: undefined },
      { ...ENTRY, actor: "" },
      { ...ENTRY, subjct: "x" },
      { ...ENTRY, details: { deep: {} } },
      { ...ENTRY, details: { endless: Number.POSITIVE_INFINITY } },
      undefined,
    ];
    for (const entry of bad) await expect(serviceOf(world.pawl).audit.record(entry as NewAudit)).rejects.toMatchObject({ code: "option_invalid" });
    await expect(serviceOf(world.pawl).audit.list({ actr: "a" } as never)).rejects.toThrow(/did you mean actor/);
    for (const actor of [1, "a\u0000", "\ud800"])
      await expect(serviceOf(world.pawl).audit.list({ actor } as never)).rejects.toMatchObject({
        code: "option_invalid",
        details: { option: "query.actor" },
      });
    await expect(serviceOf(world.pawl).audit.list({}, { limit: 1e9 })).rejects.toMatchObject({ code: "option_invalid" });
  });
});

describe("verification finds (S71)", () => {
  const fault = async (audit: ReturnType<typeof createAudit>, anchors: readonly AnchoredHead[] = []) => {
    const { ok, faults } = await audit.verify({ anchors });
    expect(ok).toBe(faults.length === 0);
    return faults.map(({ seq, why }) => `${why} at ${seq}`).join();
  };
  beforeEach(() => fill(10));

  test("nothing where nothing is wrong", async () => {
    expect(
      await fault(
        tampered((chain) => chain),
        await serviceOf(world.pawl).audit.heads(),
      ),
    ).toBe("");
  });

  test("an entry that was edited, in any of its parts", async () => {
    const other = (await body(4)).replace("key:a", "key:b");
    for (const change of [{ body: other }, { at: 1 }, { hash: "0".repeat(64) }, { prev: "0".repeat(64) }, { id: crypto.randomUUID() }])
      expect(await fault(tampered(edit(4, change)))).toBe("edited at 4");
  });

  test("two entries that changed places, and one of another chain", async () => {
    const [three, four] = [await body(3), await body(4)];
    expect(await fault(tampered((chain) => edit(4, { body: three })(edit(3, { body: four })(chain))))).toBe("edited at 3");
    expect(await fault(tampered(edit(2, { body: (await body(2)).replace('"acme"', '"umbrella"') })))).toBe("edited at 2");
  });

  test("an entry that was removed from the middle, or the first one", async () => {
    expect(await fault(tampered((chain) => chain.filter(({ seq }) => seq !== 5)))).toBe("missing at 6");
    expect(await fault(tampered((chain) => chain.filter(({ seq }) => seq !== 1)))).toBe("missing at 2");
  });

  test("an end that was cut off, the head left as it was", async () => {
    expect(await fault(tampered((chain) => chain.slice(0, 8)))).toBe("head_mismatch at 9");
    expect(await fault(tampered(() => []))).toBe("head_mismatch at 1");
  });

  test("an end that was cut off with its head, by what was anchored", async () => {
    const anchors = await serviceOf(world.pawl).audit.heads();
    const [last] = await store.audit.read("acme", { after: 7, limit: 1 });
    const audit = tampered(
      (chain) => chain.slice(0, 8),
      () => [{ tenant: "acme", seq: 8, at: 0, hash: last?.hash ?? "" }],
    );
    expect(await fault(audit), "without an anchor it looks whole").toBe("");
    expect(await fault(audit, anchors)).toBe("anchor_mismatch at 9");
  });

  test("a whole chain that was removed, by what was anchored", async () => {
    const anchors = await serviceOf(world.pawl).audit.heads();
    const audit = tampered(
      () => [],
      () => [],
    );
    expect(await fault(audit)).toBe("");
    expect(await fault(audit, anchors)).toBe("anchor_mismatch at 1");
  });

  test("entries whose chain has no head", async () => {
    expect(
      await fault(
        tampered(
          (chain) => chain,
          () => [{ tenant: "acme", seq: 0, at: 0, hash: "" }],
        ),
      ),
    ).toBe("head_mismatch at 0");
  });

  test("a chain that was written anew from some place on, by any anchor after it", async () => {
    const anchors = await Promise.all([4, 6, 9].map(async (seq) => (await store.audit.read("acme", { after: seq - 1, limit: 1 }))[0] as StoredEntry));
    const forged = await openTest({ work: false, maintenance: false });
    for (let n = 0; n < 10; n++) {
      await serviceOf(forged.pawl).audit.record({ ...ENTRY, subject: n < 5 ? `job:${n}` : "job:forged" });
      await forged.clock.advance(1);
    }
    expect((await serviceOf(forged.pawl).audit.verify()).ok).toBe(true);
    expect((await serviceOf(forged.pawl).audit.verify({ anchors })).faults).toMatchObject([{ why: "anchor_mismatch", seq: 4 }]);
    await forged.close();
  });
});
