/** Why an attempt was told to stop. */
export type AbortReason = "timeout" | "deadline" | "cancelled" | "lease_lost" | "shutdown";

const MESSAGES: Readonly<Record<AbortReason, string>> = {
  timeout: "the attempt took longer than its timeout",
  deadline: "the job's deadline has passed",
  cancelled: "the job was cancelled",
  lease_lost: "the lease is lost: another worker may hold the job now",
  shutdown: "the worker is shutting down",
};

/** The reason of `ctx.signal`, and so what most calls that take the signal throw. `why` says which. */
export class Aborted extends Error {
  override readonly name = "Aborted";
  constructor(readonly why: AbortReason) {
    super(MESSAGES[why]);
  }
}
