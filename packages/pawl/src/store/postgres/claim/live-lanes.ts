import type { Lane } from "../../../core/jobs/lane.js";
import type { Db } from "../connection/db.js";
import { laneColumns } from "../connection/lane-numbers.js";
import { sqlFile } from "../connection/sql-statement.js";
import { laneOf } from "../jobs/waiting-jobs.js";
import type { PollResult } from "./idle-polls.js";
import type { LaneHead, LaneStarts, NewLane } from "./lane-starts.js";

const LIVE_LANES = sqlFile("claim/live-lanes.sql", { hot: "claim" });

interface LiveLaneRow {
  readonly what: "head" | "lane" | "pause" | "suspect" | "policies" | "snapshot";
  readonly no: number | null;
  readonly a: string | null;
  /** of a head: the smallest number of its admitted section, if it has one */
  readonly queue: string;
  readonly priority: Lane["priority"];
  readonly tenant: string;
  readonly task: string;
  readonly admitted_section: boolean;
}

function headOf({ a, queue }: Pick<LiveLaneRow, "a"> & { readonly queue: string | null }): LaneHead {
  return { seq: a === null ? undefined : Number(a), admittedSeq: queue === null ? undefined : Number(queue) };
}

export interface LiveLanesDeps {
  readonly db: Db;
  readonly knownLanes: LaneStarts;
  /** hears which server answered, before its answer counts */
  readonly onServer: (server: string) => void;
}

export async function readLiveLanes(deps: LiveLanesDeps, queues: readonly string[] | undefined, tasks: readonly string[]): Promise<PollResult> {
  const { db, knownLanes, onServer } = deps;
  const listed = knownLanes.list();
  const rows = await LIVE_LANES.query<LiveLaneRow>(db, {
    seenUpTo: knownLanes.seenUpTo,
    known: {
      ...laneColumns(listed.map(({ lane }) => lane)),
      bound: listed.map(({ bound }) => bound),
      admittedSection: listed.map(({ admittedBound }) => admittedBound),
    },
  });
  const heads = new Array<LaneHead | undefined>(listed.length).fill(undefined);
  const newLanes: NewLane[] = [];
  const paused = new Set<string>();
  let snapshot: LiveLaneRow | undefined;
  let policies = "0";
  const suspects: LiveLaneRow[] = [];
  for (const row of rows) {
    if (row.what === "head") heads[(row.no as number) - 1] = headOf(row);
    else if (row.what === "lane") newLanes.push({ lane: laneOf(row), hasAdmitted: row.admitted_section });
    else if (row.what === "pause") paused.add(`${row.a}:${row.queue}`);
    else if (row.what === "suspect") suspects.push(row);
    else if (row.what === "policies") policies = row.a as string;
    else snapshot = row;
  }
  const { a: seq, queue: xmin, tenant: xact, task: server } = snapshot as LiveLaneRow;
  onServer(server);
  knownLanes.observe({ heads, listed, newLanes, seq: Number(seq), horizon: { xmin: Number(xmin), xact: xact === "" ? undefined : Number(xact) } });
  const served = new Set(tasks);
  const open = ({ queue, task, tenant }: Omit<Lane, "priority">): boolean =>
    served.has(task) &&
    (queues === undefined || queues.includes(queue)) &&
    !(paused.size > 0 && (paused.has(`queue:${queue}`) || paused.has(`task:${task}`) || paused.has(`tenant:${tenant}`)));
  const lanes = knownLanes.live();
  return {
    live: { lanes: lanes.filter(open), suspects: suspects.some(open), version: policies },
    nothing: lanes.length === 0 && suspects.length === 0,
  };
}
