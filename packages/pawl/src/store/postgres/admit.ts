import { type Gate, type InLine, letIn, lookedAt, type Round, roomOf } from "../../core/admission.js";
import type { JobId } from "../../core/id.js";
import { compareText, type Lane } from "../../core/lane.js";
import { type GateKey, type JobLimit, type Pass, passesOf, rankOf, TURN_RANK } from "../../core/limit.js";
import { SUSPECT_FROM } from "../../core/outcome.js";
import { plainArray, textArray } from "./arrays.js";
import { type Db, statement } from "./db.js";
import type { Transaction } from "./drivers/driver.js";
import { takeKnocks } from "./gates.js";
import { FRONT } from "./lane-bounds.js";
import { laneOf } from "./pending.js";

/** The most of a line that one round looks at, the most gates that one transaction locks, and the most rounds of a call. */
const MOST_HEADS = 100;
const MOST_GATES = 50;
const MOST_ROUNDS = 20;
/** ms after which a line is looked at again whose head is in somebody's hands */
const SOON = 20;
/** The same of one that holds up nobody: whoever has it most often takes it away for good, but may let go of it as well (as a settlement that fails). */
const LATER = 1_000;

export interface Admitted {
  readonly count: number;
  readonly lanes: readonly Lane[];
  /** lanes that have jobs at the front now, which waited */
  readonly fronts: readonly Lane[];
  /** ms until one of the gates is to be looked at again, by what was seen there */
  readonly nextIn?: number;
}

/** Lets in who can pass these gates, until nobody can. `made`: they are known to be there, as somebody held a place of each. */
export async function admit(db: Db, gates: readonly GateKey[], { made = false }: { readonly made?: boolean } = {}): Promise<Admitted> {
  const lanes: Lane[] = [];
  const fronts: Lane[] = [];
  let count = 0;
  let nextIn = Number.POSITIVE_INFINITY;
  const sorted = [...new Set(gates)].sort(compareText);
  for (let first = 0; first < sorted.length; first += MOST_GATES) {
    let some = sorted.slice(first, first + MOST_GATES);
    for (let [rounds, make] = [1, !made]; some.length > 0; rounds++) {
      const how = { make, mayRepeat: rounds < MOST_ROUNDS };
      const locked = some;
      const round = await db.transaction((tx) => admitRound(db, tx, locked, how));
      make = round.unmade === true;
      lanes.push(...round.lanes);
      fronts.push(...round.fronts);
      count += round.count;
      nextIn = Math.min(nextIn, round.nextIn ?? nextIn);
      some = [...round.again].sort(compareText);
    }
  }
  return { count, lanes, fronts, ...(Number.isFinite(nextIn) ? { nextIn } : {}) };
}

interface RoundReport extends Admitted {
  /** to be locked and looked at once more */
  readonly again: readonly GateKey[];
  /** some of them are not there */
  readonly unmade?: true;
}

/**
 * One transaction: locks the gates, in order, and reads in statements of their own how they stand, since only those see
 * what was written before the locks were had. Slots of a gate are only ever added under its lock, so none is exceeded.
 */
async function admitRound(
  db: Db,
  tx: Transaction,
  keys: readonly GateKey[],
  { make, mayRepeat }: { readonly make: boolean; readonly mayRepeat: boolean },
): Promise<RoundReport> {
  const standing = await takeKnocks(db, tx, keys, make);
  if (standing === undefined) return { ...NOBODY, again: keys, unmade: true };
  const { gates, now } = standing;
  const before = new Map([...gates].map(([key, { fullAt, closed }]) => [key, { fullAt, closed }]));
  const lines = await readHeads(tx, gates);
  const strange = [...lines.values()].flatMap(({ heads }) =>
    heads.flatMap(({ passes }) => passes.flatMap(({ gate }) => (gates.has(gate) ? [] : [gate]))),
  );
  // A head has gates that are not locked: they must be had in order, so all of it begins anew.
  if (strange.length > 0 && mayRepeat) {
    await knockAgain(tx, new Map(keys.map((key) => [key, now])));
    return { ...NOBODY, again: [...new Set([...keys, ...strange])], unmade: true };
  }
  for (const [key, gate] of gates) if (!lines.has(key)) lookedAt(gate);
  const rounds: Round<Head>[] = [];
  const later = new Map<GateKey, number>();
  const again: GateKey[] = [];
  for (const [key, { heads, asked, overtaken, passedBy }] of lines) {
    const known = heads.filter(({ passes }) => passes.every(({ gate }) => gates.has(gate)));
    if (overtaken || known.length < heads.length) {
      later.set(key, now + SOON);
      continue;
    }
    if (joinedBefore(rounds, key, heads)) {
      if (mayRepeat) again.push(key);
      else later.set(key, now);
      continue;
    }
    const round = letIn(key, heads, gates, now);
    rounds.push(round);
    if (!round.closed && heads.length < asked) lookedAt(gates.get(key) as Gate);
    if (!round.closed && passedBy) later.set(key, now + LATER);
    if (round.closed || heads.length < asked || roomOf(gates.get(key) as Gate, MOST_HEADS) === 0) continue;
    if (mayRepeat) again.push(key);
    else later.set(key, now);
  }
  const changed = [...gates].filter(([key, { fullAt, closed }]) => fullAt !== before.get(key)?.fullAt || closed !== before.get(key)?.closed);
  const done = await apply(tx, rounds, changed, later);
  return { ...done, again, ...(later.size === 0 ? {} : { nextIn: Math.min(...later.values()) - now }) };
}

/** Somebody came from another line in this round and stands before those that were read: the line is to be read again. */
function joinedBefore(rounds: readonly Round<Head>[], key: GateKey, heads: readonly InLine<Head>[]): boolean {
  const last = heads.at(-1)?.job;
  if (last === undefined) return false;
  const before = (rank: number, { place }: Head) => rank < last.rank || (rank === last.rank && place < last.place);
  return rounds.some(({ waiting }) => waiting.some(({ job, at, turn }) => at.gate === key && before(rankAt(at, job, turn), job)));
}

function rankAt({ rule }: Pass, { lane }: Head, turn: boolean): number {
  return turn ? TURN_RANK : rankOf(rule, lane.band);
}

interface Head {
  readonly id: JobId;
  readonly lane: Lane;
  /** where it stands in its line; its place is the same in the line of another gate */
  readonly rank: number;
  readonly place: number;
}
interface Heads {
  readonly heads: readonly InLine<Head>[];
  readonly asked: number;
  /** the first of a serial line is in somebody's hands: whoever comes next must not pass it by */
  readonly overtaken: boolean;
  /** some were in somebody's hands, who may yet let go of them */
  readonly passedBy: boolean;
}

/**
 * In order, as many as could pass. What somebody is about to cancel or pause is passed by; where that leaves room, how many
 * there are in all is told in a row of its own, without a head. They are counted in order, too, which only the index has:
 * where nearly all wait at one gate, another's line of nobody would be looked for in the whole table.
 */
const HEADS = statement(
  "heads_of_lines",
  `
  with head as materialized (
    select k.key as gate, p.*, p.place = f.place as first from unnest($1::text[], $2::int[]) as k(key, room)
    cross join lateral (select f.place from pawl.parked f where f.gate = k.key order by f.rank, f.place limit 1) f
    cross join lateral (
      select p.id, p.queue, p.band, p.tenant, p.task, p.rank, p.place from pawl.parked p where p.gate = k.key order by p.rank, p.place limit k.room for update skip locked
    ) p
  )
  select h.gate, 0 as waiting, h.id, h.queue, h.band, h.tenant, h.task, t.limits::text,
    t.serial and exists (select from pawl.slot s where s.kind = 'serial' and s.job = h.id) as keeps_turn, h.first, h.rank, h.place::float8 as place
  from head h cross join lateral (select t.limits, t.serial from pawl.ticket t where t.job = h.id limit 1) t
  union all
  select k.key, (select count(*)::int from (select from pawl.parked p where p.gate = k.key order by p.rank, p.place limit k.room) p), null, null, null, null, null, null, null, null, null, null
  from unnest($1::text[], $2::int[]) as k(key, room) where (select count(*) from head h where h.gate = k.key) < k.room
  order by rank, place`,
);

type HeadRow = Lane & { id: JobId; limits: string; keeps_turn: boolean; first: boolean; rank: number; place: number };
type LineRow = { gate: GateKey; waiting: number } & (HeadRow | { id: null });

async function readHeads(tx: Transaction, gates: ReadonlyMap<GateKey, Gate>): Promise<ReadonlyMap<GateKey, Heads>> {
  const rooms = [...gates]
    .map(([key, gate]) => [key, gate.rule.serial === true ? 1 : roomOf(gate, MOST_HEADS)] as const)
    .filter(([, room]) => room > 0);
  if (rooms.length === 0) return new Map();
  const rows = await tx.query<LineRow>(HEADS, [textArray(rooms.map(([key]) => key)), plainArray(rooms.map(([, room]) => room))]);
  const lines = new Map<GateKey, { waiting: number; readonly heads: HeadRow[] }>();
  for (const row of rows) {
    const line = lines.get(row.gate) ?? { waiting: 0, heads: [] };
    lines.set(row.gate, line);
    if (row.id === null) line.waiting = row.waiting;
    else line.heads.push(row);
  }
  return new Map(
    rooms.flatMap(([key, asked]) => {
      const line = lines.get(key);
      if (line === undefined || (line.waiting === 0 && line.heads.length === 0)) return [];
      const { waiting, heads } = line;
      const overtaken = gates.get(key)?.rule.serial === true && heads[0]?.first !== true;
      return [[key, { asked, heads: heads.map(inLine), overtaken, passedBy: heads.length < waiting }]];
    }),
  );
}

function inLine(row: HeadRow): InLine<Head> {
  return {
    job: { id: row.id, lane: laneOf(row), rank: row.rank, place: row.place },
    passes: passesOf(row.tenant, JSON.parse(row.limits) as JobLimit[]),
    keepsTurn: row.keeps_turn,
  };
}

const NOBODY: Admitted = { count: 0, lanes: [], fronts: [] };

/** ready.seq is drawn after the delete, which has given the transaction its id (see SafePoint). Those that waited go to the front. */
const APPLY = statement(
  "admit",
  `
  with admitted as (
    delete from pawl.parked p using unnest($1::uuid[], $13::bool[]) with ordinality as g(id, waited, ord) where p.id = g.id
    returning p.id, p.band, p.spent, p.crashes, p.queue, p.tenant, p.task, g.ord, g.waited and p.crashes < ${SUSPECT_FROM} as front
  ),
  sorted as materialized (select * from admitted order by ord),
  r as (insert into pawl.ready (seq, id, band, spent, crashes, queue, tenant, task)
    select nextval('pawl.ready_seq') + case when front then ${FRONT} else 0 end, id, band, spent, crashes, queue, tenant, task
    from sorted where crashes < ${SUSPECT_FROM}),
  u as (insert into pawl.suspect (id, band, spent, crashes, queue, tenant, task)
    select id, band, spent, crashes, queue, tenant, task from sorted where crashes >= ${SUSPECT_FROM}),
  held as (insert into pawl.slot (kind, key, job) select * from unnest($2::text[], $3::text[], $4::uuid[]) on conflict do nothing),
  moved as (
    update pawl.parked p set gate = m.gate, rank = m.rank, reason = m.reason
    from unnest($5::uuid[], $6::text[], $7::int2[], $8::text[]) as m(id, gate, rank, reason)
    where p.id = m.id and (p.gate, p.rank, p.reason) is distinct from (m.gate, m.rank, m.reason)
  ),
  left_as as (update pawl.gate g set full_at = to_timestamp(b.full_at / 1000), closed = b.closed
    from unnest($9::text[], $10::float8[], $14::bool[]) as b(key, full_at, closed) where g.key = b.key),
  counted as (insert into pawl.delta (queue, task, parked, ready) select queue, task, -count(*), count(*) from admitted group by queue, task),
  knocked as (insert into pawl.knock (at, key) select to_timestamp(k.at / 1000), k.key from unnest($11::float8[], $12::text[]) as k(at, key))
  select queue, band, tenant, task, bool_or(front) as front from admitted group by queue, band, tenant, task`,
);

async function apply(
  tx: Transaction,
  rounds: readonly Round<Head>[],
  changed: readonly (readonly [GateKey, Gate])[],
  later: Map<GateKey, number>,
): Promise<Admitted> {
  const admitted = rounds.flatMap((round) => round.admitted.map((one) => ({ ...one, waited: round.waited })));
  const waiting = rounds.flatMap((round) => round.waiting);
  for (const { knocks } of rounds) for (const [key, at] of knocks) later.set(key, Math.min(at, later.get(key) ?? at));
  if (admitted.length === 0 && waiting.length === 0 && changed.length === 0) {
    await knockAgain(tx, later);
    return NOBODY;
  }
  const slots = [...admitted, ...waiting].flatMap(({ job, slots: taken }) => taken.map((slot) => ({ ...slot, job: job.id })));
  const rows = await tx.query<Lane & { readonly front: boolean }>(APPLY, [
    plainArray(admitted.map(({ job }) => job.id)),
    textArray(slots.map(({ kind }) => kind)),
    textArray(slots.map(({ gate }) => gate)),
    plainArray(slots.map(({ job }) => job)),
    plainArray(waiting.map(({ job }) => job.id)),
    textArray(waiting.map(({ at }) => at.gate)),
    plainArray(waiting.map(({ job, at, turn }) => rankAt(at, job, turn))),
    textArray(waiting.map(({ reason }) => reason)),
    textArray(changed.map(([key]) => key)),
    plainArray(changed.map(([, gate]) => gate.fullAt)),
    ...knocksAt(later),
    plainArray(admitted.map(({ waited }) => waited)),
    plainArray(changed.map(([, gate]) => gate.closed)),
  ]);
  return { count: admitted.length, lanes: rows.map(laneOf), fronts: rows.filter(({ front }) => front).map(laneOf) };
}

const KNOCK_AGAIN = statement(
  "knock_again",
  "insert into pawl.knock (at, key) select to_timestamp(g.at / 1000), g.key from unnest($1::float8[], $2::text[]) as g(at, key)",
);

async function knockAgain(tx: Transaction, later: ReadonlyMap<GateKey, number>): Promise<void> {
  if (later.size === 0) return;
  await tx.query(KNOCK_AGAIN, knocksAt(later));
}

function knocksAt(later: ReadonlyMap<GateKey, number>): readonly string[] {
  return [plainArray([...later.values()]), textArray([...later.keys()])];
}
