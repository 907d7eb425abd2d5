import type { BeginReplyResult, Reply, ReplyRef, ReplyStore } from "../../port/access/replies.js";
import { type Db, ms, NOW, statement } from "../connection/db.js";

const OWN = "tenant = $2 and credential = $3 and key = $4";

/** Whoever meets a row that is there waits for its transaction and then judges it as it is. */
const BEGIN = statement(
  "begin_reply",
  `insert into pawl.reply as r (tenant, credential, key, hash, token, until) values ($2, $3, $4, $5, $6::uuid, ${NOW} + $7::float8 * interval '1 millisecond')
   on conflict (tenant, credential, key) do update
     set hash = excluded.hash, token = excluded.token, until = excluded.until, status = null, body = null, headers = null
     where r.until <= ${NOW} or (r.token = excluded.token and r.status is null)
   returning 1 as one`,
);
const LOOK = statement(
  "look_reply",
  `select hash, status, body, headers::text, ${ms("until")} - ${ms(NOW)} as left from pawl.reply where ${OWN} and until > ${NOW}`,
);
const FINISH = statement(
  "finish_reply",
  `update pawl.reply set status = coalesce(status, $6::int), body = coalesce(body, $7), headers = coalesce(headers, $8::json),
     until = case when status is null then ${NOW} + $9::float8 * interval '1 millisecond' else until end
   where ${OWN}  -- stop: finish-reply-snapshot
     and token = $5::uuid  -- guard: reply-is-own
   returning 1 as one`,
);
const ABANDON = statement(
  "abandon_reply",
  "delete from pawl.reply where tenant = $1 and credential = $2 and key = $3 and token = $4::uuid and status is null",
);

interface ReplyRow {
  readonly hash: string;
  readonly status: number | null;
  readonly body: string | null;
  readonly headers: string | null;
  readonly left: number;
}

export function postgresReplies(db: Db): ReplyStore {
  return {
    async begin(ref, { token, hash, patience }): Promise<BeginReplyResult> {
      for (;;) {
        if ((await db.query(BEGIN, [db.now(), ...keyOf(ref), hash, token, patience])).length > 0) return { kind: "begun" };
        const [row] = await db.query<ReplyRow>(LOOK, [db.now(), ...keyOf(ref)]);
        // Gone since: then it is free.
        if (row !== undefined) return begunOf(row, hash);
      }
    },
    async finish(ref, { token, reply, keep }) {
      const { status, body, headers } = reply;
      const kept = await db.query(FINISH, [db.now(), ...keyOf(ref), token, status, body, JSON.stringify(headers), keep]);
      return kept.length > 0 ? "kept" : "stale";
    },
    async abandon(ref, token) {
      await db.query(ABANDON, [...keyOf(ref), token]);
    },
  };
}

function begunOf({ status, body, headers, left, ...row }: ReplyRow, hash: string): BeginReplyResult {
  if (row.hash !== hash) return { kind: "different" };
  if (status === null) return { kind: "in_flight", retryIn: Math.ceil(left) };
  return { kind: "replied", reply: { status, body: body ?? "", headers: JSON.parse(headers ?? "{}") as Reply["headers"] } };
}

function keyOf({ tenant, credential, key }: ReplyRef): readonly string[] {
  return [tenant ?? "", credential, key];
}
