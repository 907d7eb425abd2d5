import type { JobState } from "pawl";
import { FILTER_ROWS, type FilterKind, type FilterName } from "pawl/service";
import type { TOptional, TUnsafe } from "typebox";
import { as, optional, QueueName, TaskName, TenantName, text } from "../schemas.js";
import { State } from "./job-answer.js";

/** The schema in a query, by what a filter holds. */
const SCHEMA_OF_KIND: Readonly<Record<FilterKind, object>> = {
  state: { ...State },
  queue: QueueName,
  task: TaskName,
  tenant: TenantName,
  label: text(128, "a label"),
  key: text(512, "a key"),
  failure: text(200, "kind or class of a failure"),
  fingerprint: text(200, "a fingerprint"),
  instant: text(64, "ISO 8601 with an offset"),
};

/** Which jobs: shared by listing and by operations on many. */
export const JOBS_FILTER = Object.fromEntries(
  FILTER_ROWS.map(([name, { kind, finds }]) => [name, optional(as<unknown>({ ...SCHEMA_OF_KIND[kind], description: finds }))]),
) as {
  readonly [Name in FilterName]: TOptional<TUnsafe<Name extends "state" ? JobState : string>>;
};

const { state: _, ...others } = JOBS_FILTER;
/** The same for jobs of one state. */
export const FILTER = others;
