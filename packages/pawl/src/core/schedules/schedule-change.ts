import type { Definition } from "./schedule.js";

/** What a schedule is, whose it is, and what its code says where people have changed that since. */
export interface StoredDefinition {
  readonly definition: Definition;
  readonly app?: string;
  readonly declared?: Definition;
}

export type PutAnswer = "created" | "changed" | "unchanged";

/**
 * What a schedule becomes when it is put by the code of an application, or at run time (`app` is undefined).
 *
 * The code speaks when it changes: what it said before, and says again at every start, undoes nothing that people changed
 * meanwhile. And what they change stays part of the code, which may drop it; only one that it has dropped becomes theirs.
 */
export function afterPut(
  old: (StoredDefinition & { readonly undeclaredSince?: number }) | undefined,
  definition: Definition,
  app: string | undefined,
): StoredDefinition & { readonly answer: PutAnswer } {
  const owner = app === undefined ? {} : { app };
  if (old === undefined) return { answer: "created", definition, ...owner };
  const saidByCode = old.declared ?? old.definition;
  const answer = same(old.definition, definition) ? "unchanged" : "changed";
  if (app !== undefined) {
    if (old.app === app && same(saidByCode, definition)) return { answer: "unchanged", ...storedDefinition(old) };
    return { answer, definition, app };
  }
  if (old.app === undefined || old.undeclaredSince !== undefined) return { answer, definition };
  return { answer, ...storedDefinition({ definition, app: old.app, declared: saidByCode }) };
}

/** Without the code's word where it says the same. */
function storedDefinition({ definition, app, declared }: StoredDefinition): StoredDefinition {
  return { definition, ...(app === undefined ? {} : { app }), ...(declared === undefined || same(declared, definition) ? {} : { declared }) };
}

function same(one: Definition, other: Definition): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
