import { it } from "vitest";
import type { Store } from "../src/store/port/index.js";
import { checkInvariants } from "./invariants.js";
import { TestClock, World } from "./world.js";

export interface ConformanceOptions {
  readonly name: string;
  /** An empty store whose clock is `now`. It may be the same one, emptied; whoever makes it closes it. */
  readonly make: (now: () => number) => Promise<Store>;
  /** Tests by their whole sentence that this store cannot pass, and why. */
  readonly skip?: readonly { readonly test: string; readonly reason: string }[];
}

/** A sentence about every store, and the proof of it in a world of its own. */
export type Test = (sentence: string, proof: (world: World) => Promise<void>) => void;

export function testsFor(options: ConformanceOptions): Test {
  return (sentence, proof) => {
    const skipped = options.skip?.find(({ test }) => test === sentence);
    if (skipped !== undefined) {
      it.skip(`${sentence} (skipped: ${skipped.reason})`, () => undefined);
      return;
    }
    it(sentence, async () => {
      const clock = new TestClock();
      const world = new World(await options.make(clock.now), clock);
      await proof(world);
      await checkInvariants(world.store);
    });
  };
}
