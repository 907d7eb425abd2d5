import { expect } from "vitest";
import type { JobId } from "../../src/core/jobs/id.js";
import type { JobOptions } from "../../src/core/jobs/job.js";
import type { JobLimit, LimitRule } from "../../src/core/limits/limit-rule.js";
import { dutiesOf } from "../duties.js";
import type { Test } from "../suite.js";
import { lane, MINUTE, SECOND, SUCCEEDED } from "../world.js";
import { addMany, holders, LIMIT_KEY, ONE, SERIAL, states, TWO, under } from "./limit-world.js";
import { limitExitTests } from "./limits-exits.js";
import { limitPassedOnTests } from "./limits-passed-on.js";
import { limitRuleTests } from "./limits-rules.js";

export function limitTests(test: Test): void {
  concurrencyTests(test);
  limitRuleTests(test);
  limitExitTests(test);
  limitPassedOnTests(test);
  severalTests(test);
}

function concurrencyTests(test: Test): void {
  test("as many jobs of a key are let in as its limit says, the others are parked and say why", async (w) => {
    const ids = await addMany(w, 4, { options: under(TWO) });
    expect(await states(w, ids)).toEqual(["ready", "ready", "parked", "parked"]);
    expect(await w.get(ids[2] as JobId)).toMatchObject({ parkedFor: "concurrency", limitKey: { limit: "per key", key: "k" } });
    expect(await holders(w)).toEqual(ids.slice(0, 2));
    expect(await w.store.limits.get(LIMIT_KEY)).toMatchObject({ rule: TWO, next: { job: ids[2], reason: "concurrency" } });
  });

  test("a batch of one key is let in up to the limit, in the order of the batch", async (w) => {
    const answers = await w.enqueue(...Array.from({ length: 5 }, () => ({ options: under(TWO) })));
    const ids = answers.map((answer) => (answer as { id: JobId }).id);
    expect(await states(w, ids)).toEqual(["ready", "ready", "parked", "parked", "parked"]);
    expect(await w.claimIds()).toEqual(ids.slice(0, 2));
  });

  test("a batch answers in its order, of which some jobs are under limits and others are not", async (w) => {
    const answers = await w.enqueue({ input: "0" }, { input: "1", options: under(ONE) }, { input: "2" }, { input: "3", options: under(ONE) });
    const jobs = await Promise.all(answers.map((answer) => w.get((answer as { id: JobId }).id)));
    expect(jobs.map(({ input, state }) => `${input} ${state}`)).toEqual(["0 ready", "1 ready", "2 ready", "3 parked"]);
  });

  test("a settlement lets in the next of its key, in order", async (w) => {
    const ids = await addMany(w, 3, { options: under(ONE) });
    for (const id of ids) await w.run(id);
    expect(await states(w, ids)).toEqual(["succeeded", "succeeded", "succeeded"]);
    expect(await holders(w)).toEqual([]);
  });

  test("a key that is full keeps nobody else waiting", async (w) => {
    await addMany(w, 20, { options: under(ONE) });
    const other = await w.add({ options: under(ONE, "other") });
    const free = await w.add();
    expect(await states(w, [other, free])).toEqual(["ready", "ready"]);
  });

  test("the same key is another one under another limit's name or another tenant", async (w) => {
    const first = await w.add({ options: under(ONE) });
    const named = await w.add({ options: under(ONE, "k", { limit: "another" }) });
    const tenant = await w.add({ tenant: "zeta", options: under(ONE) });
    expect(await states(w, [first, named, tenant])).toEqual(["ready", "ready", "ready"]);
  });

  test("two tasks share a limit of one name", async (w) => {
    const mail = await w.add({ task: "mail", options: under(ONE) });
    const post = await w.add({ task: "post", options: under(ONE) });
    expect(await states(w, [mail, post])).toEqual(["ready", "parked"]);
  });

  test("inside a key the urgent job is let in first", async (w) => {
    const first = await w.add({ options: under(ONE) });
    const later = await w.add({ options: under(ONE) });
    const urgent = await w.add({ priority: 9, options: under(ONE) });
    await w.run(first);
    expect(await states(w, [later, urgent])).toEqual(["parked", "ready"]);
  });

  test("the newest job says what the limit of its key is", async (w) => {
    const ids = await addMany(w, 4, { options: under(ONE) });
    expect(await states(w, ids)).toEqual(["ready", "parked", "parked", "parked"]);
    const last = await w.add({ options: under({ concurrency: 3 }) });
    expect(await states(w, [...ids, last])).toEqual(["ready", "ready", "ready", "parked", "parked"]);
  });

  test("a delayed job takes its slot when it is due, not before", async (w) => {
    const later = await w.add({ delay: SECOND, options: under(ONE) });
    expect(await holders(w)).toEqual([]);
    const now = await w.add({ options: under(ONE) });
    w.clock.advance(SECOND);
    await dutiesOf(w.store).promote(10);
    expect(await states(w, [now, later])).toEqual(["ready", "parked"]);
    await w.run(now);
    expect(await w.state(later)).toBe("ready");
  });

  test("a dependent lines up when its parents are done", async (w) => {
    const parent = await w.add({ task: "parent" });
    const child = await w.add({ after: [parent], options: under(ONE) });
    const other = await w.add({ options: under(ONE) });
    expect(await states(w, [child, other])).toEqual(["blocked", "ready"]);
    await w.run(parent, SUCCEEDED, undefined, { lanes: [lane({ task: "parent" })] });
    expect(await w.state(child)).toBe("parked");
    await w.run(other);
    expect(await w.state(child)).toBe("ready");
  });

  test("jobs that wait at a limit key are counted as parked", async (w) => {
    const ids = await addMany(w, 3, { options: under(ONE) });
    const counts = async () => (await w.store.records.counts())[0]?.counts;
    expect(await counts()).toMatchObject({ ready: 1, parked: 2 });
    await w.run(ids[0] as JobId);
    expect(await counts()).toMatchObject({ ready: 1, parked: 1, succeeded: 1 });
  });
}

function severalTests(test: Test): void {
  const both = (account: string, region: string, rule: LimitRule = ONE): JobOptions => ({
    limits: [
      { limit: "account", key: account, rule },
      { limit: "region", key: region, rule: ONE },
    ],
  });

  test("a job under several limits needs all of them, and holds none while it waits", async (w) => {
    const first = await w.add({ options: both("a", "eu") });
    const second = await w.add({ options: both("b", "eu") });
    expect(await w.get(second)).toMatchObject({ state: "parked", parkedFor: "concurrency", limitKey: { limit: "region", key: "eu" } });
    expect(await holders(w, { limit: "account", key: "b" })).toEqual([]);
    const third = await w.add({ options: both("b", "us") });
    expect(await w.state(third)).toBe("ready");
    await w.run(first);
    expect(await w.get(second)).toMatchObject({ state: "parked", limitKey: { limit: "account", key: "b" } });
    await w.run(third);
    expect(await w.state(second)).toBe("ready");
    expect(await holders(w, { limit: "region", key: "eu" })).toEqual([second]);
  });

  test("one that waits for a token waits for that, whoever takes the last slot of its key through another", async (w) => {
    const region: JobLimit = { limit: "region", key: "eu", rule: { concurrency: 2, rate: { limit: 1, per: MINUTE, burst: 3 } } };
    await w.add({ options: { limits: [region] } });
    const dear = await w.add({ options: { limits: [{ ...region, cost: 3 }] } });
    expect(await w.get(dear)).toMatchObject({ parkedFor: "rate" });
    const other = await w.add({ options: { limits: [{ limit: "account", key: "a", rule: ONE }, region] } });
    expect(await w.state(other)).toBe("ready");
    expect(await w.get(dear)).toMatchObject({ state: "parked", parkedFor: "rate", limitKey: { limit: "region", key: "eu" } });
  });

  test("one that goes on to wait at another limit key keeps its position there: who came later does not pass it by", async (w) => {
    const region: JobLimit = { limit: "region", key: "eu", rule: { concurrency: 3, rate: { limit: 1, per: MINUTE, burst: 3 } } };
    await w.add({ options: { limits: [region] } });
    const answers = await w.enqueue(
      {
        options: {
          limits: [
            { limit: "account", key: "a", rule: TWO },
            { ...region, cost: 3 },
          ],
        },
      },
      { options: { limits: [region] } },
    );
    const [dear, cheap] = answers.flatMap((answer) => (answer.kind === "created" ? answer.id : []));
    expect(await w.get(dear as JobId)).toMatchObject({ state: "parked", parkedFor: "rate", limitKey: { limit: "region", key: "eu" } });
    expect(await w.get(cheap as JobId)).toMatchObject({ state: "parked", limitKey: { limit: "region", key: "eu" } });
  });

  test("jobs that one limit keeps back are in nobody's way at another", async (w) => {
    await w.add({ options: both("z", "eu") });
    const blocked = await addMany(w, 5, { options: both("a", "eu", TWO) });
    const free = await w.add({ options: both("a", "us", TWO) });
    expect(await states(w, blocked)).toEqual(Array(5).fill("parked"));
    expect(await w.state(free)).toBe("ready");
  });

  test("a job keeps its serial slot while another limit keeps it back", async (w) => {
    const options = (region: string): JobOptions => ({
      limits: [
        { limit: "account", key: "a", rule: SERIAL },
        { limit: "region", key: region, rule: ONE },
      ],
    });
    const other = await w.add({ options: { limits: [{ limit: "region", key: "eu", rule: ONE }] } });
    const first = await w.add({ options: options("eu") });
    const second = await w.add({ options: options("us") });
    expect(await states(w, [first, second])).toEqual(["parked", "parked"]);
    await w.run(other);
    expect(await states(w, [first, second])).toEqual(["ready", "parked"]);
    await w.run(first);
    expect(await w.state(second)).toBe("ready");
  });
}
