import { expect } from "vitest";
import type { JobId } from "../../src/core/jobs/id.js";
import type { UniqueRule } from "../../src/core/jobs/unique-key.js";
import { dutiesOf } from "../duties.js";
import type { Test } from "../suite.js";
import { MINUTE, SECOND, type World } from "../world.js";

function debounced(wait: number, longest?: number): { readonly unique: UniqueRule; readonly delay: number } {
  const debounce = { wait, ...(longest === undefined ? {} : { longest }) };
  return { unique: { key: "k", hold: "unstarted", onConflict: "replace", debounce }, delay: wait };
}
const throttled = { unique: { key: "k", hold: MINUTE, onConflict: "existing" } as UniqueRule };

async function takeOver(w: World, spec: ReturnType<typeof debounced>, input = "null"): Promise<{ id: JobId; replaced?: JobId }> {
  const [answer] = await w.enqueue({ ...spec, input });
  if (answer?.kind !== "created") throw new Error(`expected a new job, got ${answer?.kind}`);
  return answer;
}

export function debounceTests(test: Test): void {
  test("of debounced jobs the last one runs, after a time of quiet", async (w) => {
    const first = await takeOver(w, debounced(SECOND), "1");
    w.clock.advance(SECOND - 1);
    const second = await takeOver(w, debounced(SECOND), "2");
    expect(second.replaced).toBe(first.id);
    expect(await w.state(first.id)).toBe("cancelled");
    w.clock.advance(SECOND - 1);
    expect((await dutiesOf(w.store).promote(10)).count).toBe(0);
    w.clock.advance(1);
    await dutiesOf(w.store).promote(10);
    expect((await w.hold()).job).toMatchObject({ id: second.id, input: "2" });
  });

  test("debounced jobs wait no longer than they may, however many come", async (w) => {
    const start = w.clock.now();
    const rule = debounced(SECOND, 2_500);
    const dues: number[] = [];
    for (let i = 0; i < 5; i++) {
      dues.push((await w.get((await takeOver(w, rule)).id)).dueAt - start);
      w.clock.advance(600);
    }
    expect(dues).toEqual([1_000, 1_600, 2_200, 2_500, 2_500]);
  });

  test("a debounced job that has begun is not replaced, and the next one begins anew", async (w) => {
    const rule = debounced(SECOND, 1_500);
    const first = await takeOver(w, rule);
    w.clock.advance(SECOND);
    await dutiesOf(w.store).promote(10);
    await w.hold();
    const second = await takeOver(w, rule);
    expect(second.replaced).toBeUndefined();
    expect(await w.state(first.id)).toBe("running");
    w.clock.advance(SECOND - 1);
    const third = await takeOver(w, rule);
    expect(third.replaced).toBe(second.id);
    expect((await w.get(third.id)).dueAt).toBe(w.clock.now() + 501);
  });

  test("a throttled job is the only one of its key for its time, finished or not", async (w) => {
    const first = await w.add(throttled);
    expect(await w.enqueue(throttled)).toEqual([{ kind: "existing", id: first }]);
    await w.run(first);
    w.clock.advance(MINUTE - 1);
    expect(await w.enqueue(throttled)).toEqual([{ kind: "existing", id: first }]);
    w.clock.advance(1);
    expect(await w.enqueue(throttled)).toMatchObject([{ kind: "created" }]);
  });
}
