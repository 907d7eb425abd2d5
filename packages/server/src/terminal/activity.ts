import type { Pawl } from "pawl";
import type { EventName } from "pawl/service";
import { type ActivityMark, EVENT_PHRASES } from "../telemetry/logs/event-phrases.js";

/** One thing that happened, as people read it. */
export interface Activity {
  readonly kind: ActivityMark;
  /** the task, or who speaks */
  readonly subject: string;
  readonly text: string;
}

/** Calls back with each thing that the live views show, until the answer is called. */
export function followActivity(pawl: Pick<Pawl, "on">, onActivity: (entry: Activity) => void): () => void {
  const follow = <E extends EventName>(name: E): (() => void)[] => {
    const phrases = EVENT_PHRASES[name];
    if (phrases === null || !phrases.inTerminal) return [];
    return [
      pawl.on(name, (event) => {
        const phrase = phrases.phrase(event);
        if (phrase?.mark !== undefined) onActivity({ kind: phrase.mark, subject: phrase.subject, text: phrase.text });
      }),
    ];
  };
  const stops = (Object.keys(EVENT_PHRASES) as EventName[]).flatMap((name) => follow(name));
  return () => {
    for (const stop of stops) stop();
  };
}
