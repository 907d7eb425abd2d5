import { checkPattern, matches } from "../../core/access/name-pattern.js";
import { checkArray } from "../check.js";
import type { JobView } from "./view.js";

/** A job as listings show it. */
export type Redact = (view: JobView) => JobView;

const HIDDEN = "(redacted)";

/** Hides what jobs of these tasks hold wherever many are listed. Who asks for one by its id still sees it. */
export function redactor(patterns: unknown): Redact {
  const all = checkArray("redact", patterns).map((pattern, index) => checkPattern(`redact[${index}]`, pattern));
  return (view) => (all.some((pattern) => matches(pattern, view.task)) ? redacted(view) : view);
}

function redacted({ failure, ...view }: JobView): JobView {
  return {
    ...view,
    redacted: true,
    input: HIDDEN,
    ...("output" in view ? { output: HIDDEN } : {}),
    ...("progress" in view ? { progress: HIDDEN } : {}),
    ...(failure === undefined ? {} : { failure: { kind: failure.kind, name: failure.name, message: HIDDEN } }),
  };
}
