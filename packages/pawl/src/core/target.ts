/** Where the jobs of one task of one tenant are delivered, instead of being run by code. */
export interface TargetRef {
  readonly tenant: string;
  readonly task: string;
}

export interface TargetFacts extends TargetRef {
  readonly url: string;
  /** deliveries at a time, of each process that delivers */
  readonly concurrency: number;
  /** ms until a delivery must be answered */
  readonly timeout: number;
  readonly createdAt: number;
  readonly changedAt: number;
  /** it answered that it wants no more; nothing is delivered until it is put again */
  readonly goneAt?: number;
}

/** What deliveries are signed with. */
export interface TargetSecret {
  readonly text: string;
  /** absent: it is the newest */
  readonly until?: number;
}

export interface OpenTarget extends TargetFacts {
  /** those that are still good, the newest first */
  readonly secrets: readonly TargetSecret[];
}

/** Of a tenant, and of all together: every process that delivers holds all of them. */
export const MOST_TARGETS = { ofTenant: 100, ofAll: 10_000 } as const;

export function targetKey({ tenant, task }: TargetRef): string {
  return JSON.stringify([tenant, task]);
}
