import type { AttemptView } from "pawl";
import { duration, fromNow, plural } from "../../text/amounts.js";
import { clock, type StyledLine, type TextStyle } from "../demo-screen.js";
import { hanging } from "../wrap.js";
import type { TopData } from "./data.js";

/** One job, from what it is to what happened to it, the newest first: as many lines as that takes, nothing cut off. */
export function jobLines({ job: shownJob, now }: TopData, columns: number): readonly StyledLine[] {
  if (shownJob === undefined) return [[["   …", "dim"]]];
  const { job, history, logs, explanation } = shownJob;
  const fact = (name: string, value: string, style?: TextStyle) => hanging([[` ${name.padEnd(10)}`, "dim"]], value, columns, style);
  return [
    ...fact("job", job.id),
    ...fact("state", `${job.state}${job.intent === undefined ? "" : `, asked to ${job.intent}`}`),
    ...fact("task", `${job.task} in ${job.queue}, priority ${job.priority}, tenant ${job.tenant}`),
    ...fact("due", `${job.dueAt.toISOString()} (${fromNow(job.dueAt, now)}), ${plural(job.attempts, "attempt")} spent`),
    ...fact("why", explanation.text),
    ...(job.input === undefined ? [] : fact("input", JSON.stringify(job.input))),
    ...(job.progress === undefined ? [] : fact("progress", JSON.stringify(job.progress))),
    ...(job.output === undefined ? [] : fact("output", JSON.stringify(job.output))),
    ...(history.length === 0 ? [] : [[]]),
    ...history.toReversed().flatMap((attempt, index) => attemptLines(attempt, index === 0, columns)),
    ...(logs.length === 0 ? [] : [[]]),
    ...logs.toReversed().flatMap(({ at, level, message }) => hanging([[` ${clock(at)} `, "dim"], [`${level.padEnd(5)} `]], message, columns)),
  ];
}

/** The stack of the last one only: those before it are usually the same. */
function attemptLines({ startedAt, duration: took, outcome, next, failure }: AttemptView, last: boolean, columns: number): readonly StyledLine[] {
  const style = outcome === "succeeded" ? "green" : outcome === "failed" || outcome === "crashed" ? "red" : "yellow";
  const line: StyledLine = [
    [` ${clock(startedAt)} ${duration(took).padStart(8)} `, "dim"],
    [`${outcome} → ${next}`, style],
  ];
  if (failure === undefined) return [line];
  const frames = (last ? (failure.stack ?? "") : "").split("\n").filter((frame) => /^\s+at /.test(frame));
  return [
    line,
    ...hanging([["   "]], `${failure.name}: ${failure.message}`, columns),
    ...frames.flatMap((frame) => hanging([["     "]], frame.trim(), columns, "dim")),
  ];
}
