import { inject } from "vitest";

declare module "vitest" {
  interface ProvidedContext {
    /** set in the project `rest` */
    again?: boolean;
  }
}

/** Whether this is `npm run test:rest`, which looks again, and longer, at what `npm test` has looked at once. */
export function again(): boolean {
  return inject("again") === true;
}

/** Of what shows the same of several things, `npm test` takes the first, and `npm run test:rest` the others. */
export function onceOrAgain<T>(all: readonly T[]): readonly T[] {
  return again() ? all.slice(1) : all.slice(0, 1);
}
