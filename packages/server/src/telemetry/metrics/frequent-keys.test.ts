import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FrequentKeys } from "./frequent-keys.js";

describe("who comes most often", () => {
  test("is known exactly while there is room for all", () => {
    const frequent = new FrequentKeys(3);
    for (const key of ["b", "a", "b", "c", "b", "a"]) frequent.note(key);
    expect(frequent.top(2)).toEqual(["b", "a"]);
    expect(frequent.top(9)).toEqual(["b", "a", "c"]);
  });

  test("is among those kept, however many others come", () => {
    const stream = fc.array(fc.nat(500), { minLength: 200, maxLength: 600 });
    fc.assert(
      fc.property(stream, fc.nat(500), (others, star) => {
        const frequent = new FrequentKeys(16);
        others.forEach((other, index) => {
          frequent.note(`k${other}`);
          if (index % 8 === 0) frequent.note(`k${star}`);
        });
        // One in nine is more than one in sixteen.
        expect(frequent.top(16)).toContain(`k${star}`);
      }),
    );
  });

  test("is forgotten after a while by who comes now", () => {
    const frequent = new FrequentKeys(2);
    for (let i = 0; i < 1_000; i++) frequent.note("then");
    frequent.note("now");
    for (let i = 0; i < 12; i++) frequent.age();
    for (let i = 0; i < 3; i++) frequent.note("now");
    expect(frequent.top(1)).toEqual(["now"]);
  });

  test("keeps no more than it has room for", () => {
    const frequent = new FrequentKeys(4);
    for (let i = 0; i < 1_000; i++) frequent.note(`k${i}`);
    expect(frequent.top(1_000)).toHaveLength(4);
  });
});
