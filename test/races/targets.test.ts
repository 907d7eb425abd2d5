import { expect } from "vitest";
import { SECOND, type World } from "../../packages/pawl/src/store/conformance/world.js";
import { EVERYWHERE, races } from "../support/race.js";

const MAIL = { tenant: "acme", task: "mail" };
const put = (url: string) => async (w: World) =>
  (await w.store.targets.put({ ...MAIL, url, concurrency: 1, timeout: 1_000, secret: `of ${url}` })).kind;
const rotate = (secret: string) => async (w: World) => (await w.store.targets.rotate(MAIL, { secret, overlap: SECOND }))?.url;
const standing = async (w: World) => (await w.store.targets.open(10)).targets.map(({ url, secrets }) => [url, ...secrets.map(({ text }) => text)]);
const STOPS = ["mark_policies", "get_target", "create_target", "rotate_target", "commit"];
/** As one that only reads would be. */
const UNLOCKED = {
  statement: "mark_policies",
  from: "insert into pawl.policy_mark as m (mark) values (1) on conflict (only_one) do update set mark = m.mark + 1 returning mark::float8",
  to: "select 0::float8 as mark",
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
      afterwards: standing,
      async holds(w) {
        expect((await standing(w))[0], "a URL, the newest secret and the one before").toHaveLength(3);
      },
    },
    [{ clause: "MARK is a lock", without: [UNLOCKED], because: /no order|to have a length/ }],
    EVERYWHERE,
  );

  race(
    "two who make one target",
    {
      setup: async () => {},
      racers: [
        { run: put("https://one.example/"), stops: STOPS },
        { run: put("https://two.example/"), stops: STOPS },
      ],
      afterwards: standing,
      async holds(w) {
        expect((await standing(w))[0], "one target with one secret").toHaveLength(2);
      },
    },
    [{ clause: "MARK is a lock", without: [UNLOCKED], because: /no order|duplicate key|to have a length/ }],
    EVERYWHERE,
  );
});
