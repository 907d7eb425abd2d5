import { expect } from "vitest";
import { DAY, SECOND, type World } from "../../packages/pawl/conformance/world.js";
import { ChainCheck } from "../../packages/pawl/src/core/access/audit-entry.js";
import { sha256 } from "../../packages/pawl/src/runtime/io/digest.js";
import { ALL_SERVERS, races } from "../support/races/race.js";
import type { StatementSplit } from "../support/races/racing-session.js";

const [FIRST, SECOND_DIGEST, THIRD] = ["1", "2", "3"].map((digit) => digit.repeat(64)) as [string, string, string];
const token = (n: number) => `00000000-0000-4000-8000-00000000000${n}`;

const create = (w: World) => w.store.apiKeys.create({ id: "a", name: "a", tenant: "acme", grants: [{ role: "viewer" }], digest: FIRST });
const rotate = (digest: string) => async (w: World) => (await w.store.apiKeys.rotate("everyone", "a", { digest, keepOldFor: SECOND })).kind;
const revoke = async (w: World) => (await w.store.apiKeys.revoke("everyone", "a")).kind;
const CHANGE = { stops: ["lock_api_key", "rotate_api_key", "revoke_api_key", "commit"] };
const UNLOCKED = { guard: "api-key-locked" };
const goodOnes = async (w: World) => {
  const good = [];
  for (const digest of [FIRST, SECOND_DIGEST, THIRD]) if ((await w.store.apiKeys.check("a", digest)).secret !== undefined) good.push(digest[0]);
  return good;
};

const note = (n: number) => ({ id: token(n), tenant: "acme", actor: `key:${n}`, action: "jobs.control", outcome: "allowed" }) as const;
const record = (n: number) => async (w: World) => (await w.store.audit.record(note(n))).seq;
/** Inside the statement, where its snapshot is taken and the head is not locked yet. */
const RECORD_SNAPSHOT: StatementSplit = {
  at: "record-audit-snapshot",
  to: (barrier, tenant) => `case when ${barrier} then ${tenant} else ${tenant} end`,
};

const REF = { tenant: "acme", credential: "a", key: "k" };
const REPLY = { status: 201, body: "{}", headers: {} };
const begin = (n: number) => async (w: World) => (await w.store.replies.begin(REF, { token: token(n), hash: "h", patience: 30 * SECOND })).kind;
const finish = (n: number) => (w: World) => w.store.replies.finish(REF, { token: token(n), reply: { ...REPLY, status: 200 + n }, keep: DAY });
const answer = async (w: World) => {
  const begun = await w.store.replies.begin(REF, { token: token(9), hash: "h", patience: 1 });
  return begun.kind === "replied" ? begun.reply.status : begun.kind;
};

races((race) => {
  race(
    "a rotation and a revocation of one key",
    {
      setup: create,
      racers: [
        { run: rotate(SECOND_DIGEST), ...CHANGE },
        { run: revoke, ...CHANGE },
      ],
      afterwards: async (w) => [(await w.store.apiKeys.get("everyone", "a"))?.revokedAt !== undefined, await goodOnes(w)],
      async holds(w, _, [rotation]) {
        expect((await goodOnes(w)).includes("2"), "a rotation that was refused leaves no secret").toBe(rotation === "changed");
      },
    },
    // Either order is well, whatever is locked; without the lock two rotations break: below.
    [],
    ALL_SERVERS,
  );

  race(
    "two rotations of one key",
    {
      setup: create,
      racers: [
        { run: rotate(SECOND_DIGEST), ...CHANGE },
        { run: rotate(THIRD), ...CHANGE },
      ],
      afterwards: goodOnes,
      async holds(w) {
        const before = await goodOnes(w);
        expect(before).toHaveLength(2);
        w.clock.advance(SECOND);
        expect(await goodOnes(w), "one stays").toHaveLength(1);
        w.clock.advance(-SECOND);
      },
    },
    [{ clause: "LOCK locks the key's row", without: [UNLOCKED], because: /no order|to have a length/ }],
    ALL_SERVERS,
  );

  race(
    "two entries of one chain",
    {
      setup: record(0),
      racers: [
        { run: record(1), stops: ["commit"], splits: [RECORD_SNAPSHOT] },
        { run: record(2), stops: ["commit"], splits: [RECORD_SNAPSHOT] },
      ],
      async holds(w) {
        const check = new ChainCheck("acme", sha256);
        for (const entry of await w.store.audit.read("acme", { after: 0, limit: 10 })) expect(check.follow(entry)).toBeUndefined();
        expect(check.seq).toBe(3);
        expect(await w.store.audit.heads()).toMatchObject([{ seq: 3, hash: check.head }]);
      },
    },
    [
      {
        clause: "what follows is computed from the head as it is when it is locked",
        // As one who reads the head first and computes from what was read.
        without: [
          {
            guard: "audit-head-after-lock",
            becomes: "prev = (select hash from pawl.audit_head where tenant = $2),",
          },
        ],
        because: /expected|no order/,
      },
    ],
    ALL_SERVERS,
  );

  race(
    "the first two entries of a chain",
    {
      setup: async () => undefined,
      racers: [
        { run: record(1), splits: [RECORD_SNAPSHOT] },
        { run: record(2), splits: [RECORD_SNAPSHOT] },
      ],
      async holds(w) {
        const check = new ChainCheck("acme", sha256);
        for (const entry of await w.store.audit.read("acme", { after: 0, limit: 10 })) expect(check.follow(entry)).toBeUndefined();
        expect(check.seq).toBe(2);
      },
    },
    // Whoever meets the head of another waits for it: the key of the table is the guard.
    [],
  );

  race(
    "one request sent twice at once",
    {
      setup: async () => undefined,
      racers: [
        { run: begin(1), stops: ["begin_reply"] },
        { run: begin(2), stops: ["begin_reply"] },
      ],
      afterwards: answer,
      async holds(_, __, answers) {
        expect([...answers].sort()).toEqual(["begun", "in_flight"]);
      },
    },
    [],
  );

  race(
    "the answer of one that took too long, and another who takes its place",
    {
      async setup(w) {
        await begin(1)(w);
        w.clock.advance(30 * SECOND);
      },
      racers: [
        { run: finish(1), splits: [{ at: "finish-reply-snapshot" }] },
        {
          async run(w) {
            const kind = await begin(2)(w);
            return kind === "begun" ? [kind, await finish(2)(w)] : kind;
          },
          stops: ["begin_reply", "finish_reply"],
        },
      ],
      afterwards: answer,
      async holds(w, _, [slow]) {
        expect(await answer(w)).toBe(slow === "kept" ? 201 : 202);
      },
    },
    [
      {
        clause: "FINISH asks for its own token",
        without: [{ guard: "reply-is-own", becomes: "and $5::uuid is not null" }],
        because: /no order|expected/,
      },
    ],
    ALL_SERVERS,
  );
});
