import type { Definition } from "./schedule.js";

/** What a schedule is, whose it is, and what its code says where people have changed that since. */
export interface Standing {
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
  old: (Standing & { readonly missingSince?: number }) | undefined,
  definition: Definition,
  app: string | undefined,
): Standing & { readonly answer: PutAnswer } {
  const owner = app === undefined ? {} : { app };
  if (old === undefined) return { answer: "created", definition, ...owner };
  const saidByCode = old.declared ?? old.definition;
  const answer = same(old.definition, definition) ? "unchanged" : "changed";
  if (app !== undefined) {
    if (old.app === app && same(saidByCode, definition)) return { answer: "unchanged", ...standing(old) };
    return { answer, definition, app };
  }
  if (old.app === undefined || old.missingSince !== undefined) return { answer, definition };
  return { answer, ...standing({ definition, app: old.app, declared: saidByCode }) };
}

/** Without the code's word where it says the same. */
function standing({ definition, app, declared }: Standing): Standing {
  return { definition, ...(app === undefined ? {} : { app }), ...(declared === undefined || same(declared, definition) ? {} : { declared }) };
}

function same(one: Definition, other: Definition): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
