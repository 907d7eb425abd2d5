import type { Pawl } from "pawl";
import { clean } from "../text/clean.js";
import { type Activity, followActivity } from "./activity.js";
import { clock } from "./demo-screen.js";

/** Prints what happens as plain lines, for pipes, files and simple terminals, until the answer is called. */
export function printActivity(pawl: Pawl, print: (line: string) => void): () => void {
  return followActivity(pawl, (entry) => print(activityLine(entry, new Date())));
}

export function activityLine({ subject, text }: Activity, at: Date): string {
  return `${clock(at)}  ${clean(subject).padEnd(16)} ${clean(text)}`;
}
