import type { BeginReplyResult, Reply, ReplyRef, ReplyStore } from "../../port/access/replies.js";
import type { Tables } from "../state.js";

export interface MemoryReply {
  readonly token: string;
  readonly hash: string;
  readonly until: number;
  readonly reply?: Reply;
}

export function memoryReplies(tables: Tables): ReplyStore {
  const rows = tables.replies;
  const own = (ref: ReplyRef, token: string) => {
    const row = rows.get(keyOf(ref));
    return row?.token === token ? row : undefined;
  };
  return {
    begin: (ref, { token, hash, patience }) =>
      tables.step((): BeginReplyResult => {
        const row = rows.get(keyOf(ref));
        if (row === undefined || row.until <= tables.now || (row.token === token && row.reply === undefined)) {
          rows.set(keyOf(ref), { token, hash, until: tables.now + patience });
          return { kind: "begun" };
        }
        if (row.hash !== hash) return { kind: "different" };
        return row.reply === undefined ? { kind: "in_flight", retryIn: row.until - tables.now } : { kind: "replied", reply: row.reply };
      }),
    finish: (ref, { token, reply, keep }) =>
      tables.step(() => {
        const row = own(ref, token);
        if (row === undefined) return "stale";
        if (row.reply === undefined) rows.set(keyOf(ref), { ...row, reply, until: tables.now + keep });
        return "kept";
      }),
    abandon: (ref, token) =>
      tables.step(() => {
        if (own(ref, token)?.reply === undefined && own(ref, token) !== undefined) rows.delete(keyOf(ref));
      }),
  };
}

function keyOf({ tenant, credential, key }: ReplyRef): string {
  return JSON.stringify([tenant ?? null, credential, key]);
}

export function forgetReplies(tables: Tables): number {
  let forgotten = 0;
  for (const [key, { until }] of tables.replies) if (until <= tables.now && tables.replies.delete(key)) forgotten++;
  return forgotten;
}
