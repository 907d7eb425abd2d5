import type { World } from "../../packages/pawl/conformance/world.js";
import { ALL_SERVERS, races } from "../support/races/race.js";
import type { VerbPieces } from "../support/races/racing-session.js";

/** Its number is drawn, and nobody can see the batch yet. */
const APPEND: VerbPieces = {
  splits: [{ at: "events-turn", to: (barrier, entries) => `case when ${barrier} then ${entries} else ${entries} end` }],
};
const READ: VerbPieces = { stops: ["read_events"] };

const append = (entry: string) => async (w: World) => {
  await w.store.events.append([JSON.stringify(entry)]);
  return "recorded";
};

/** Reads on from where it was, as a tail does. */
async function read(w: World, after: number) {
  const { batches } = await w.store.events.read(after, 10);
  return { last: batches.at(-1)?.number ?? after, heard: batches.flatMap(({ entries }) => entries.map((entry) => JSON.parse(entry) as string)) };
}

races((race) => {
  race(
    "two processes record what happens while a third reads on",
    {
      setup: async (w) => (await w.store.events.watch(60_000)).last,
      racers: [
        { run: append("ana"), ...APPEND },
        { run: append("bob"), ...APPEND },
        {
          run: async (w, start: number) => {
            const first = await read(w, start);
            const then = await read(w, first.last);
            return { last: then.last, heard: [...first.heard, ...then.heard] };
          },
          ...READ,
        },
      ],
      notSerial: "what a reader has heard by then depends on when it reads; that it hears all of it once is looked at here",
      holds: async (w, _, [, , reader]) => {
        const { last, heard } = reader as Awaited<ReturnType<typeof read>>;
        const all = [...heard, ...(await read(w, last)).heard].sort();
        if (all.join() !== "ana,bob") throw new Error(`the reader missed something: it heard ${all.join()}`);
      },
      limit: 500,
    },
    [
      {
        clause: "APPEND draws its number when it holds the lock, and holds it until all can see the batch",
        without: [{ guard: "events-take-turns", becomes: "select 1" }],
        because: /missed something/,
      },
    ],
    ALL_SERVERS,
  );
});
