import type { EventName, Pawl } from "pawl";
import { type Mark, WORDS } from "../words/events.js";

/** One thing that happened, as people read it. */
export interface Entry {
  readonly kind: Mark;
  /** the task, or who speaks */
  readonly subject: string;
  readonly text: string;
}

/** Calls back with each thing that the live views show, until the answer is called. */
export function entriesOf(pawl: Pick<Pawl, "on">, hear: (entry: Entry) => void): () => void {
  const follow = <E extends EventName>(name: E): (() => void)[] => {
    const words = WORDS[name];
    if (words === null || !words.live) return [];
    return [
      pawl.on(name, (event) => {
        const said = words.of(event);
        if (said?.mark !== undefined) hear({ kind: said.mark, subject: said.subject, text: said.text });
      }),
    ];
  };
  const stops = (Object.keys(WORDS) as EventName[]).flatMap((name) => follow(name));
  return () => {
    for (const stop of stops) stop();
  };
}
