/** Where the jobs of one task of one tenant are delivered, instead of being run by code. */
export interface TargetRef {
  readonly tenant: string;
  readonly task: string;
}

export interface TargetRecord extends TargetRef {
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

export interface OpenTarget extends TargetRecord {
  /** those that are still good, the newest first */
  readonly secrets: readonly TargetSecret[];
}

/** Of a tenant, and of all together: every process that delivers holds all of them. */
export const MAX_TARGETS = { ofTenant: 100, ofAll: 10_000 } as const;

export function targetKey({ tenant, task }: TargetRef): string {
  return JSON.stringify([tenant, task]);
}

/** Controls, separators, marks of direction and halves of pairs. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Z}]/u;

/**
 * What is in a URL and cannot be seen, in words; undefined: nothing. No URL can hold it, and those that read one leave some of
 * it out without a word: what is asked would not be what is shown.
 */
export function unseenIn(url: string): string | undefined {
  const found = UNSEEN.exec(url);
  if (found === null) return undefined;
  const point = (found[0].codePointAt(0) as number).toString(16).toUpperCase().padStart(4, "0");
  return `its character ${found.index + 1} is U+${point}, which cannot be seen: leave it out, or write it percent-encoded`;
}
