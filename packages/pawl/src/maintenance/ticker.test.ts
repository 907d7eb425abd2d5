import { describe, expect, test } from "vitest";
import type { DutyReport } from "../store/port/duties/duties.js";
import { ticker } from "./ticker.js";

const BATCH = 10;

/** A store whose steps answer one after the other, and that tells how many were asked for at once. */
function steps(...answers: readonly (DutyReport | Error)[]) {
  const left = [...answers];
  const told: DutyReport[] = [];
  let open = 0;
  let abreast = 0;
  const tick = async (): Promise<DutyReport> => {
    abreast = Math.max(abreast, ++open);
    await Promise.resolve();
    open -= 1;
    const answer = left.shift() ?? NOTHING;
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const duty = ticker(tick, (ticked) => told.push(ticked));
  const run = async () => {
    abreast = 0;
    const ran = await duty.run();
    return { ...ran, abreast };
  };
  return { run, told };
}

const NOTHING: DutyReport = { count: 0, more: false };
const of = (schedules: number, nextIn?: number): DutyReport => ({
  count: schedules,
  more: schedules >= BATCH,
  ...(nextIn === undefined ? {} : { nextIn }),
});

describe("ticking", () => {
  test("a full step is followed at once by two at a time, until none is full", async () => {
    const { run, told } = steps(of(BATCH), of(BATCH), of(BATCH), of(BATCH), of(3, 500), of(2, 500));
    expect(await run()).toEqual({ count: BATCH, nextIn: 0, abreast: 1 });
    expect(await run()).toEqual({ count: 2 * BATCH, nextIn: 0, abreast: 2 });
    expect(await run()).toEqual({ count: BATCH + 3, nextIn: 0, abreast: 2 });
    expect(await run()).toEqual({ count: 2, nextIn: 500, abreast: 2 });
    expect(await run()).toEqual({ count: 0, abreast: 1 });
    expect(told.map(({ count }) => count)).toEqual([BATCH, BATCH, BATCH, BATCH, 3, 2]);
  });

  test("where one of two steps fails, the other one is told of, and the duty begins with one again", async () => {
    const { run, told } = steps(of(BATCH), of(4), new Error("no"), of(1, 100));
    await run();
    await expect(run()).rejects.toThrow("no");
    expect(told.map(({ count }) => count)).toEqual([BATCH, 4]);
    expect(await run()).toEqual({ count: 1, nextIn: 100, abreast: 1 });
  });

  test("where ticks are thick, the next step is put off so that it takes many; a tick alone puts off nothing", async () => {
    const duty = steps(of(8, 0), of(8, 20), of(1, 0), of(1, 200));
    expect(await duty.run()).toMatchObject({ nextIn: 8 });
    expect(await duty.run()).toMatchObject({ nextIn: 20 });
    expect(await duty.run()).toMatchObject({ nextIn: 1 });
    expect(await duty.run()).toMatchObject({ nextIn: 200 });
  });

  test("what is due and held by another process is looked at again a little later, not at once", async () => {
    const { run } = steps(of(0, 0));
    expect(await run()).toMatchObject({ count: 0, nextIn: 50 });
  });
});
