import { describe, expect, test } from "vitest";
import type { Definition } from "./schedule.js";
import { afterPut } from "./schedule-change.js";

const every = (minutes: number) => ({ rule: { kind: "every", every: minutes * 60_000 } }) as Definition;
const [hourly, daily, weekly] = [every(60), every(1_440), every(10_080)] as const;
const APP = "shop";

describe("a schedule that is put", () => {
  test("is whose it was put by", () => {
    expect(afterPut(undefined, hourly, APP)).toEqual({ answer: "created", definition: hourly, app: APP });
    expect(afterPut(undefined, hourly, undefined)).toEqual({ answer: "created", definition: hourly });
  });

  test("at run time stays part of the code, with what that says", () => {
    const changed = { definition: daily, app: APP, declared: hourly };
    expect(afterPut({ definition: hourly, app: APP }, daily, undefined)).toEqual({ answer: "changed", ...changed });
    expect(afterPut(changed, daily, undefined)).toEqual({ answer: "unchanged", ...changed });
    expect(afterPut(changed, weekly, undefined)).toEqual({ answer: "changed", definition: weekly, app: APP, declared: hourly });
    expect(afterPut(changed, hourly, undefined), "back to what the code says").toEqual({ answer: "changed", definition: hourly, app: APP });
  });

  test("by code that says what it said before stays as people changed it", () => {
    const changed = { definition: daily, app: APP, declared: hourly };
    expect(afterPut(changed, hourly, APP)).toEqual({ answer: "unchanged", ...changed });
    expect(afterPut({ ...changed, undeclaredSince: 1 }, hourly, APP)).toEqual({ answer: "unchanged", ...changed });
  });

  test("by code that was changed is what the code says", () => {
    const changed = { definition: daily, app: APP, declared: hourly };
    expect(afterPut(changed, weekly, APP)).toEqual({ answer: "changed", definition: weekly, app: APP });
    expect(afterPut(changed, daily, APP), "which people said before").toEqual({ answer: "unchanged", definition: daily, app: APP });
    expect(afterPut({ definition: hourly, app: APP }, daily, APP)).toEqual({ answer: "changed", definition: daily, app: APP });
  });

  test("by the code of another application, or first at run time, is that code's", () => {
    expect(afterPut({ definition: daily, app: APP, declared: hourly }, hourly, "other")).toEqual({
      answer: "changed",
      definition: hourly,
      app: "other",
    });
    expect(afterPut({ definition: daily }, hourly, APP)).toEqual({ answer: "changed", definition: hourly, app: APP });
    expect(afterPut({ definition: hourly }, hourly, APP)).toEqual({ answer: "unchanged", definition: hourly, app: APP });
  });

  test("at run time, when the code no longer has it, is nobody's code any more", () => {
    const dropped = { definition: hourly, app: APP, undeclaredSince: 1 };
    expect(afterPut(dropped, daily, undefined)).toEqual({ answer: "changed", definition: daily });
    expect(afterPut(dropped, hourly, undefined)).toEqual({ answer: "unchanged", definition: hourly });
  });
});
