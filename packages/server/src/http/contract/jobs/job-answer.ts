import { type AttemptView, type Explanation, JOB_STATES, type JobView } from "pawl";
import { type JobChange, type LogView, OPTION_ROWS, type OptionKind } from "pawl/service";
import Type, { type TProperties, type TSchema } from "typebox";
import { Anything, as, JobId, list, openObject, optional, pageOf, Time } from "../schemas.js";

export const State = as<JobView["state"]>({ enum: JOB_STATES });
const Text = Type.String();
const Count = Type.Integer();

export const FailureShape = Type.Object({
  kind: Text,
  name: Text,
  message: Text,
  stack: optional(Text),
  code: optional(Text),
  causes: optional(list(Type.Object({ name: Text, message: Text, stack: optional(Text) }))),
});

/** How an option that is stored with the job is shown, by what it holds: durations in ms. */
const SHOWN_OF_KIND: Readonly<Partial<Record<OptionKind, TSchema>>> = {
  retry: Anything,
  duration: Count,
  count: Count,
  spread: as<JobView["spread"]>({ type: ["integer", "array"], items: { type: "integer" } }),
  label: Text,
  labels: list(Text),
  unique: Text,
  trace: Anything,
};

function optionFields(): TProperties {
  return Object.fromEntries(
    OPTION_ROWS.flatMap(([, { stored, shownAs, kind }]) => {
      const shape = SHOWN_OF_KIND[kind];
      return stored !== "job" || shownAs === undefined || shape === undefined ? [] : [[shownAs, optional(shape)] as const];
    }),
  );
}

export const Job = openObject<JobView>(
  {
    id: JobId,
    task: Text,
    queue: Text,
    priority: Count,
    tenant: Text,
    state: State,
    input: Anything,
    undecodable: optional(Type.Boolean()),
    createdAt: Time,
    dueAt: Time,
    nextRunAt: optional(Time),
    finishedAt: optional(Time),
    attempts: Count,
    crashes: Count,
    output: optional(Anything),
    failure: optional(FailureShape),
    progress: optional(Anything),
    parkedFor: optional(Text),
    limitKey: optional(Type.Object({ limit: Text, key: Text })),
    waitsFor: optional(list(JobId)),
    intent: optional(Text),
    ...optionFields(),
    tags: list(Text),
    rerunOf: optional(JobId),
    tick: optional(Anything),
    atMostOnce: Type.Boolean(),
    limits: optional(list(Anything)),
  },
  "A job. Durations are ms.",
);

export const JobsPage = pageOf<JobView>(Job);
export const Change = openObject<JobChange>(
  { from: State, to: Text },
  "From which state to which. They are equal where a worker holds the job and was asked to see to it.",
);
export const History = pageOf<AttemptView>(
  Type.Object({
    outcome: Text,
    worker: optional(Text),
    startedAt: Time,
    finishedAt: Time,
    duration: Type.Number(),
    output: optional(Anything),
    failure: optional(FailureShape),
    next: State,
  }),
);
export const Logs = pageOf<LogView>(Type.Object({ at: Time, level: Text, message: Text, data: optional(Anything) }));
export const Explained = openObject<Explanation>({
  job: JobId,
  state: State,
  reasons: list(Type.Object({ kind: Text })),
  estimatedStart: optional(Time),
  text: Text,
});

/** What became of one job of an enqueue. */
export interface EnqueuedAnswer {
  readonly id: string;
  readonly task: string;
  readonly enqueued: "created" | "existing" | "rejected";
  readonly replaced?: string;
  /** the finished job, where it was waited for */
  readonly job?: JobView;
}
const ENQUEUED = {
  id: JobId,
  task: Text,
  enqueued: as<EnqueuedAnswer["enqueued"]>({ enum: ["created", "existing", "rejected"] }),
  replaced: optional(JobId),
};
export const Enqueued = openObject<EnqueuedAnswer>(ENQUEUED);
export const EnqueuedAndWaited = openObject<EnqueuedAnswer>({
  ...ENQUEUED,
  job: optional(Job),
});
