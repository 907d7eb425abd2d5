import { task } from "pawl";

/** The task that `packed.test.ts` gives to `pawl dev`. */
export const greet = task("greet", ({ who }) => `hello ${who}`);
