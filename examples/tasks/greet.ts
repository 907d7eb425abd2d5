import { task } from "pawl";

/** For `pawl dev examples/tasks`: change the text while it runs. */
export const greet = task<{ who: string }, string>("greet", ({ who }) => `hello ${who}`);
