import { describe, expect, it } from "vitest";
import { SafeSequence } from "./safe-sequence.js";

/** Transactions as Postgres counts them: a snapshot knows of ids up to the last one that has ended, and of none after it. */
class Server {
  #next = 100;
  #ended = 99;
  readonly #running = new Set<number>();

  begin(): number {
    const id = this.#next++;
    this.#running.add(id);
    return id;
  }

  end(id: number): void {
    this.#running.delete(id);
    this.#ended = Math.max(this.#ended, id);
  }

  /** What a statement of its own finds, which draws an id. */
  look(): { readonly xmin: number; readonly xact: number } {
    const xmin = Math.min(this.#ended + 1, ...[...this.#running].filter((id) => id <= this.#ended));
    const xact = this.begin();
    this.end(xact);
    return { xmin, xact };
  }
}

describe("the safe sequence", () => {
  it("is what was read by the look before, when all that was at work then has ended", () => {
    const [server, safe] = [new Server(), new SafeSequence()];
    expect(safe.observe(5, server.look())).toBe(0);
    expect(safe.observe(7, server.look())).toBe(5);
    expect(safe.observe(7, server.look())).toBe(7);
  });

  it("does not pass a transaction that is at work, also if none after it has ended", () => {
    const [server, safe] = [new Server(), new SafeSequence()];
    safe.observe(5, server.look());
    safe.observe(5, server.look());
    const writer = server.begin();
    // It has drawn 6.
    for (let n = 0; n < 4; n++) expect(safe.observe(6, server.look())).toBe(5);
    server.end(writer);
    safe.observe(6, server.look());
    expect(safe.observe(6, server.look())).toBe(6);
  });

  it("stays where it is while nobody draws an id", () => {
    const [server, safe] = [new Server(), new SafeSequence()];
    for (let n = 0; n < 4; n++) expect(safe.observe(5, { xmin: server.look().xmin, xact: undefined })).toBe(0);
  });
});
