import type { Pawl } from "pawl";
import { clean } from "../words/clean.js";
import { type Entry, entriesOf } from "./entry.js";
import { clock } from "./screen.js";

/** Prints what happens as plain lines, for pipes, files and simple terminals, until the answer is called. */
export function printLines(pawl: Pawl, print: (line: string) => void): () => void {
  return entriesOf(pawl, (entry) => print(lineOf(entry, new Date())));
}

export function lineOf({ subject, text }: Entry, at: Date): string {
  return `${clock(at)}  ${clean(subject).padEnd(16)} ${clean(text)}`;
}
