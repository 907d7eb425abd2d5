import { expect } from "vitest";
import { SECOND, type World } from "../../packages/pawl/conformance/world.js";
import { ALL_SERVERS, races } from "../support/races/race.js";

const MAIL = { tenant: "acme", task: "mail" };
const put = (url: string) => async (w: World) =>
  (await w.store.targets.put({ ...MAIL, url, concurrency: 1, timeout: 1_000, secret: `of ${url}` })).kind;
const rotate = (secret: string) => async (w: World) => (await w.store.targets.rotate(MAIL, { secret, keepOldFor: SECOND }))?.url;
const summary = async (w: World) => (await w.store.targets.open(10)).targets.map(({ url, secrets }) => [url, ...secrets.map(({ text }) => text)]);
const STOPS = ["raise_policy_version", "get_target", "create_target", "rotate_target", "commit"];
/** As one that only reads would be. */
const UNLOCKED = {
  guard: "policy-version-is-a-lock",
  becomes: "select 0::float8 as version",
};

races((race) => {
  race(
    "two rotations of one target",
    {
      setup: put("https://one.example/"),
      racers: [
        { run: rotate("second"), stops: STOPS },
        { run: rotate("third"), stops: STOPS },
      ],
      afterwards: summary,
      async holds(w) {
        expect((await summary(w))[0], "a URL, the newest secret and the one before").toHaveLength(3);
      },
    },
    [{ clause: "VERSION is a lock", without: [UNLOCKED], because: /no order|to have a length/ }],
    ALL_SERVERS,
  );

  race(
    "two who make one target",
    {
      setup: async () => {},
      racers: [
        { run: put("https://one.example/"), stops: STOPS },
        { run: put("https://two.example/"), stops: STOPS },
      ],
      afterwards: summary,
      async holds(w) {
        expect((await summary(w))[0], "one target with one secret").toHaveLength(2);
      },
    },
    [{ clause: "VERSION is a lock", without: [UNLOCKED], because: /no order|duplicate key|to have a length/ }],
    ALL_SERVERS,
  );
});
