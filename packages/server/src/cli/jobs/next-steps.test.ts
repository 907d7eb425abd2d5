import type { Explanation, JobView } from "pawl";
import type { Reason } from "pawl/service";
import { describe, expect, test } from "vitest";
import { nextSteps } from "./next-steps.js";

const id = "01a1e14d-2d83-732b-8b3b-87c2775a2b3b";
const waiting = { id, task: "mail.send", tenant: "acme", state: "ready" } as JobView;
const because = (...reasons: readonly Reason<Date>[]) => ({ job: waiting.id, state: "ready", reasons, text: "" }) satisfies Explanation;

describe("what comes next for a job that waits", () => {
  test.each<[string, Reason<Date>, RegExp]>([
    ["a paused queue is resumed", { kind: "paused", what: "queue", name: "mail" }, /^pawl queues resume mail /],
    ["a paused job is resumed", { kind: "paused", what: "job", name: id }, new RegExp(`^pawl jobs resume ${id} `)],
    ["what it waits for is looked at", { kind: "blocked", on: [{ job: waiting.id, state: "dead" }], count: 1 }, new RegExp(`^pawl jobs show ${id} `)],
    [
      "what holds its slot is looked at",
      { kind: "limit_key", limit: "account", key: "7", for: "serial", held: 1, most: 1, holders: [{ job: waiting.id, state: "scheduled" }] },
      new RegExp(`^pawl jobs show ${id} `),
    ],
    ["keys are looked at where it waits for a token", { kind: "limit_key", limit: "api", key: "eu", for: "rate" }, /^pawl limits --tenant acme /],
    ["an open breaker begins anew", { kind: "breaker_open", task: "mail.send", tenant: "acme" }, /^pawl breakers reset mail\.send --tenant acme /],
    [
      "a limit on its tenant is changed",
      { kind: "policy_limit", what: "tenant", name: "acme", limit: "rate", most: 5 },
      /^pawl tenants update acme --rate /,
    ],
    ["workers are looked at where none can run it", { kind: "unserved", lacks: [{ kind: "worker" }] }, /^pawl workers /],
  ])("%s", (_, reason, step) => {
    expect(nextSteps(waiting, because(reason))).toEqual([expect.stringMatching(step)]);
  });

  test("is nothing where it only has to wait its turn, and the explanation where nobody has asked for it", () => {
    expect(nextSteps(waiting, because({ kind: "queued_behind", ahead: 3 }))).toEqual([]);
    expect(nextSteps(waiting, undefined)).toEqual([expect.stringContaining(`pawl jobs explain ${id}`)]);
  });
});
