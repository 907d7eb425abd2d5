import { FIELD, RECORD } from "./claim-answer.js";
import { hotStatement, ms, NOW, statement } from "./db.js";
import { SEQ_STEP } from "./parcels.js";

/** Bytes from which on an input is read apart, so that the facts of a claim stay one text of a modest size. */
const LARGE = 65_536;

interface AnswerParts {
  /** those that came along in parcels, and the options of jobs that have any */
  readonly inputs: string;
  readonly options: string;
  readonly parcels: string;
  readonly packed: string;
  readonly left: string;
}

const NO_PARCELS = { inputs: "null", options: "null", parcels: "0", packed: "0" };

/** What each lane gave. Where it is all that was asked for, what is left there says nothing of the others. */
const GAVE = "gave as materialized (select no, sum(cardinality(ids)) as count from taken group by no),";

/** Parcels out of which jobs were taken, in order: of which lane, from where on there, how many, and after how many others of it. */
const RUNS = `(
    select json_build_object('no', array_agg(no), 'seq', array_agg(seq), 'count', array_agg(given), 'before', array_agg(upto - count),
      'bare', case when bool_or(inputs is null) then array_agg(inputs is null) end, 'told', case when bool_or(told) then array_agg(told) end)
    from dealt where id is null having count(*) > 0
  )`;

/** What came as rows, by lane: how many, the place of the last one, and how many were at the front. */
const ROWS = `(
    select json_build_object('no', array_agg(no order by no), 'count', array_agg(count order by no), 'last', array_agg(last order by no),
      'front', case when max(front) > 0 then array_agg(front order by no) end)
    from (select no, count(*) as count, max(seq) as last, count(*) filter (where seq < 0) as front from taken where tid is not null group by no) r having count(*) > 0
  )`;
/** Lanes that were asked for parcels and have none: neither one that was locked here, nor one that another holds. */
const UNPACKED = `(
    select array_agg(no) from offered where packed and case when no in (select no from full_at union all select no from fence) then false else true end
  )`;

/**
 * One row: the lease, its jobs in order, what was asked of them, and the facts of each in one text, which costs both
 * sides a fraction of a row per job.
 */
function answer({ inputs, options, parcels, packed, left }: AnswerParts): string {
  return `
  select l.id::text as lease, ${ms(NOW)} as now, array_to_string(o.jobs, ',') as jobs, o.about,
    case when o.ids is not null then (
      select string_agg(j.id::text || j.home || E'${FIELD}' || j.input::text || case when j.options is null then '' else E'${FIELD}' || ${ms("j.due_at")} || E'${FIELD}' || j.options::text end, E'${RECORD}')
      from pawl.job j where j.id = any(o.ids) and j.id >= o.ids[1] and j.id <= o.ids[cardinality(o.ids)] and pg_column_size(j.input) < ${LARGE}
    ) end as facts, ${inputs} as inputs, ${options} as options,
    case when exists (select from pawl.intent) then (select json_object_agg(i.job, i.kind)::text from pawl.intent i where i.job = any(o.jobs)) end as intents,
    ${parcels}::int as parcels, ${packed}::int as packed, ${left} as left
  from own o left join leased l on true`;
}

/**
 * Takes the next jobs of each offered lane, from the lane's lower bound on, under one new lease. A lane's jobs are rows
 * of `ready` and parcels, in one order. Parcels are few: they are locked first, and say up to where rows can matter.
 * - what is locked is materialized, or the planner may run its LIMIT more than once;
 * - rows are picked along `bounded`, which is joined with nothing: a hash join may turn the order in which lanes were offered,
 *   and with it whom the claim's limit leaves out;
 * - what is known of each lane is looked up in one object for all (`bounded`), or in a hash (IN inside CASE): the planner
 *   believes that there are five, and would compare all with all;
 * - where there are parcels, they and the rows of all lanes are merged by `lined`: how much of each the lane's quota takes,
 *   and then (`dealt`) the claim's limit, in the order lanes were offered. Rows alone are in order as they were picked;
 * - jobs come lane by lane: `dealt` and `taken` are in order, and whatever is made of them follows it;
 * - lanes that are known to have no parcels are not asked for them (`packed`);
 * - rows behind a parcel of their lane that is not locked here (`fence`: another holds it, or it was not asked for) wait
 *   for it, or one job enqueued after thousands would be started before them;
 * - rows and parcels are deleted by an array of their addresses: a join might scan the table. What is known of them was
 *   read when they were locked. They are never updated: the address of a version that is newer than the snapshot would
 *   lead nowhere (and Postgres 18 has been seen to crash where it judges a row again in a statement that prunes
 *   partitions);
 * - a parcel whose jobs have options (`told`) brings these behind the inputs;
 * - what a parcel brought of its jobs is put back with the rest of it only if most of it was taken: who takes one at a time
 *   would write it anew each time;
 * - facts are looked up by a sorted array of ids between its ends: one walk through the index of the partitions that
 *   can hold them, where a join would look into every partition for each job. One that is missing dies alone.
 */
export const CLAIM = hotStatement("claim", "claim", claimText(false));
/** The same for jobs of several lanes: which one each is of. */
export const CLAIM_LANES = hotStatement("claim", "claim_lanes", claimText(true));
/**
 * The same where jobs may be at the front of a lane ($13: from where on, null where it is not their turn). They come before
 * all others; what they leave of the lane's quota, and of the claim's limit, is for the rest.
 */
export const CLAIM_FRONTS = hotStatement("claim", "claim_fronts", claimText(true, { fronts: true }));
/** The same where the limits that lanes are under have been seen to. */
export const CLAIM_LIMITED = statement("claim_limited", claimText(true, { fronts: true, limits: "" }));

/**
 * The same for one lane that is not known to have parcels: a few rows cost a fraction of it. It takes nothing if there
 * are parcels after all, and says so (`left`): they may come first.
 */
export const CLAIM_ROWS = hotStatement(
  "claim",
  "claim_rows",
  `
  with lane as materialized (
    select exists (
      select from pawl.parcel q where q.queue = $5::text and q.band = $6::int2 and q.tenant = $7::text and q.task = $8::text and q.seq > $9::bigint - ${SEQ_STEP}
    ) as packed from (values ($5::text, $7::text, $8::text)) as o(queue, tenant, task) where not ${over("pawl.pause", "o")} ${unlimited()}
  ),
  taken as materialized (
    select r.ctid as tid, r.seq, array[r.id] as ids, r.spent, r.crashes from pawl.ready r
    where r.queue = $5::text and r.band = $6::int2 and r.tenant = $7::text and r.task = $8::text and r.seq >= $9::bigint and (select not packed from lane)
    order by r.seq limit $4 for update skip locked
  ),
  left_rows as (delete from pawl.ready where ctid = any(array(select tid from taken))),
  ${hold("", "false")},
  counted as (insert into pawl.delta (queue, task, ready, running) select $5::text, $8::text, -count, count from own where count > 0)
  ${answer({ ...NO_PARCELS, left: "case when (select packed from lane) then '[1]' end" })}`,
);

/** One of `table` (paused or limited ones) that the lane `of` belongs to. */
export function over(table: string, of: string): string {
  return `exists (select from ${table} p where (p.kind = 'queue' and p.name = ${of}.queue) or (p.kind = 'task' and p.name = ${of}.task) or (p.kind = 'tenant' and p.name = ${of}.tenant))`;
}

/** Lanes under a limit are left to those who count its slots. */
function unlimited(): string {
  return `and case when exists (select from pawl.lane_limit) then not ${over("pawl.lane_limit", "o")} else true end`;
}

/** Whether lane `no` gave less than it was asked for. Where there is one lane alone, the claim did. */
function unmet(several: boolean): string {
  return several ? "case when no in (select no from gave where count >= ($10::int[])[no]) then false else true end" : "true";
}

interface ClaimTextOptions {
  readonly fronts?: boolean;
  readonly limits?: string;
}

function claimText(several: boolean, { fronts = false, limits = unlimited() }: ClaimTextOptions = {}): string {
  const limit = fronts ? "($4 - (select count(*)::int from front))" : "$4";
  const ofLane = (table: string) => `${table}.queue = o.queue and ${table}.band = o.band and ${table}.tenant = o.tenant and ${table}.task = o.task`;
  const lane = several ? ", queue, task" : "";
  const offeredLane = several ? ", o.queue, o.task" : "";
  return `
  with ${fronts ? frontText(ofLane("r"), limits) : offeredText("offered", "", limits)},
  locked as materialized (
    select o.no, o.quota, o.queue, o.band, o.tenant, o.task, q.* from (select * from offered where packed) o cross join lateral (
      select q.ctid as tid, q.seq, q.size as count, q.jobs, coalesce(q.inputs, q.facts) as inputs, q.facts is not null as told from pawl.parcel q
      where ${ofLane("q")} and q.seq > o.bound - ${SEQ_STEP}
      order by q.seq limit ceil(o.quota / $12::float8)::int + 1 for update skip locked
    ) q
  ),
  full_at as materialized (
    select no, min(seq) filter (where upto >= quota) as full from (select no, seq, quota, sum(count) over (partition by no order by seq) as upto from locked) l group by no
  ),
  fence as materialized (
    select o.no, q.seq from (select * from offered where packed) o cross join lateral (
      select q.seq from pawl.parcel q where ${ofLane("q")} and q.seq > o.bound - ${SEQ_STEP} and case when q.seq in (select seq from locked) then false else true end order by q.seq limit 1
    ) q
  ),
  bounded as materialized (
    select *, coalesce(least(
      ((select jsonb_object_agg(f.no, f.full) from full_at f) ->> no::text)::bigint, ((select jsonb_object_agg(no, seq) from fence) ->> no::text)::bigint
    ), 9223372036854775807) as below from offered
  ),
  picked as materialized (
    select o.no, o.quota, exists (select from locked) as mixed${offeredLane}, p.* from bounded o cross join lateral (
      select r.ctid as tid, r.seq, r.id, r.spent, r.crashes from pawl.ready r
      where ${ofLane("r")} and r.seq >= o.bound and r.seq < o.below
      order by r.seq limit o.quota for update skip locked
    ) p limit ${limit}
  ),
  lined as materialized (
    select *, least(count, quota - (upto - count))::int as share from (
      select *, sum(count) over (partition by no order by seq) as upto from (
        select no, quota, queue, band, tenant, task, tid, seq, count, jobs, inputs, told, null::uuid as id, 0::int2 as spent, 0::int2 as crashes from locked
        union all select no, quota, ${several ? "queue, null, null, task" : "null, null, null, null"}, tid, seq, 1, null, null, false, id, spent, crashes from picked where mixed
      ) i
    ) i where upto - count < quota
  ),
  dealt as materialized (
    select *, least(share, ${limit} - (in_all - share))::int as given from (select *, sum(share) over (order by no, seq) as in_all from lined) l where in_all - share < ${limit} order by no, seq
  ),
  opened as materialized (
    select tid, seq, count, queue, band, tenant, task, jobs, case when given * 2 >= count then inputs end as inputs, told, given from dealt where id is null
  ),
  emptied as (delete from pawl.parcel where ctid = any(array(select tid from opened))),
  put_back as (
    insert into pawl.parcel (seq, size, band, queue, tenant, task, jobs, inputs, facts)
    select seq + given, count - given, band, queue, tenant, task, jobs[given + 1 :], case when not told then inputs[given + 1 :] end,
      case when told then inputs[given + 1 : count] || inputs[count + given + 1 :] end from opened where given < count
  ),
  taken as materialized (
    select * from (
      ${fronts ? `select no, seq, array[id] as ids, spent, crashes, tid, true as bare${lane} from front union all` : ""}
      select no, seq, array[id] as ids, spent, crashes, tid, true as bare${lane} from picked where not mixed
      union all select no, seq, array[id], spent, crashes, tid, true${lane} from dealt where id is not null
      union all select no, seq, jobs[1 : given], 0, 0, null, inputs is null${lane} from dealt where id is null
    ) t order by no, seq
  ),
  left_rows as (delete from pawl.ready where ctid = any(array(select tid from taken where tid is not null))),
  ${several ? GAVE : ""}
  ${hold(`'runs', ${RUNS}, ${several ? `'rows', ${ROWS}, 'unpacked', ${UNPACKED}, ` : ""}`, "false", "bare")},
  counted as (
    insert into pawl.delta (queue, task, ready, running)
    ${several ? "select queue, task, -sum(cardinality(ids)), sum(cardinality(ids)) from taken group by queue, task" : "select ($5::text[])[1], ($8::text[])[1], -count, count from own where count > 0"}
  )
  ${answer({
    inputs: `(select string_agg(array_to_string(inputs[1 : given], E'${RECORD}'), E'${RECORD}') from dealt where inputs is not null)`,
    options: `(select string_agg(array_to_string(inputs[count + 1 : count + given], E'${RECORD}', ''), E'${RECORD}') from dealt where told)`,
    parcels: "(select count(*) from locked)",
    packed: "(select coalesce(sum(count), 0) from locked)",
    // Others hold parcels of the lane, or some came after those that were locked; some were locked in vain; or there are some though none were asked for.
    left: `case when o.count < $4 then (
      select json_agg(distinct no)::text from (
        select no from fence where ${unmet(several)}
        union all select no from locked where case when seq in (select seq from opened where given = count) then false else true end and ${unmet(several)}
        union all select o.no from (select * from offered where not packed and ${unmet(several)}) o
          cross join lateral (select from pawl.parcel q where ${ofLane("q")} and q.seq > o.bound - ${SEQ_STEP} limit 1) q
      ) l
    ) end`,
  })}`;
}

function offeredText(name: string, more: string, limits: string): string {
  const [column, parameter] = more === "" ? ["", ""] : [`, ${more}`, ", $13::bigint[]"];
  return `${name} as materialized (
    select * from unnest($5::text[], $6::int2[], $7::text[], $8::text[], $9::bigint[], $10::int[], $11::bool[]${parameter}) with ordinality as o(queue, band, tenant, task, bound, quota, packed${column}, no)
    where not ${over("pawl.pause", "o")} ${limits}
  )`;
}

/** What is taken from the fronts; what the rest is asked for is less by that. */
function frontText(ofLane: string, limits: string): string {
  return `${offeredText("asked", "front", limits)},
  front as materialized (
    select o.no, o.queue, o.task, p.* from (select * from asked where front is not null) o cross join lateral (
      select r.ctid as tid, r.seq, r.id, r.spent, r.crashes from pawl.ready r
      where ${ofLane} and r.seq >= o.front and r.seq < 0 order by r.seq limit o.quota for update skip locked
    ) p limit $4
  ),
  offered as materialized (
    select * from (select queue, band, tenant, task, bound, (quota - (select count(*) from front f where f.no = asked.no))::int as quota, packed, no from asked) o where quota > 0
  )`;
}

/**
 * The lease over what was `taken`, and its jobs in that order with what is not their facts. Jobs out of one parcel stay together
 * until here: a row for each of a thousand costs more than all the rest. `bare`: of which facts are to be looked up.
 */
function hold(more: string, alone: string, bare = "true"): string {
  return `own as materialized (
    select coalesce(sum(cardinality(ids)), 0) as count, array(select unnest(ids) from taken) as jobs,
      case when bool_or(${bare}) then array(select unnest(ids) as id from taken where ${bare} order by id) end as ids,
      json_build_object(${more}'last', max(seq + cardinality(ids) - 1),
        'spent', case when max(spent) > 0 then array(select t.spent from taken t cross join lateral unnest(t.ids)) end,
        'crashes', case when max(crashes) > 0 then array(select t.crashes from taken t cross join lateral unnest(t.ids)) end)::text as about
    from taken
  ),
  leased as (
    insert into pawl.lease (claimed_at, until, worker, open, alone, jobs)
    select ${NOW}, ${NOW} + $3 * interval '1 millisecond', $2, count, ${alone}, jobs from own where count > 0
    returning id
  )`;
}

/** One job that has taken workers down, alone in its lease. $8 and $9: the limits that have room for it. */
export const CLAIM_SUSPECT = statement(
  "claim_suspect",
  `
  with pick as materialized (
    select p.tid from unnest($4::text[]) o(task) cross join lateral (
      select u.ctid as tid, u.seq from pawl.suspect u
      where u.task = o.task and ($5::text[] is null or u.queue = any($5::text[]))
        and ($6::int2[] is null or u.band = any($6::int2[])) and ($7::text[] is null or u.tenant = any($7::text[]))
        and not ${over("pawl.pause", "u")}
        and not ${over("(select * from pawl.lane_limit l where (l.kind, l.name) not in (select * from unnest($8::text[], $9::text[])))", "u")}
      order by u.seq limit 1 for update skip locked
    ) p order by p.seq limit 1
  ),
  taken as materialized (
    delete from pawl.suspect u using pick where u.ctid = pick.tid returning array[u.id] as ids, u.seq, u.spent, u.crashes, u.queue, u.band, u.tenant, u.task
  ),
  ${hold("'lane', (select json_build_object('queue', queue, 'band', band, 'tenant', tenant, 'task', task) from taken), ", "true")},
  counted as (insert into pawl.delta (queue, task, ready, running) select queue, task, -1, 1 from taken)
  ${answer({ ...NO_PARCELS, left: "null" })}`,
);
