import { expect, test } from "vitest";
import type { OpenWait } from "../../packages/pawl/src/service.js";
import { DriverError } from "../../packages/pawl/src/store/postgres/connection/errors.js";
import type { Driver } from "../../packages/pawl/src/store/postgres/drivers/driver.js";
import { finish } from "../../packages/pawl/src/store/postgres/open.js";
import type { PostgresOptions } from "../../packages/pawl/src/store/postgres/options.js";
import { virtualClock } from "../../packages/pawl/src/testing/clock.js";

/** A server that does not answer, and how often it was asked. */
function nobody(code?: string): { readonly driver: Driver; asked: number; closed: boolean } {
  const server = { asked: 0, closed: false };
  const refuse = async () => {
    server.asked++;
    throw new DriverError(code === undefined ? "unsent" : "refused", code, new Error("nobody is there"));
  };
  const driver: Driver = {
    kind: "pg",
    query: refuse,
    transaction: refuse,
    reading: refuse,
    script: refuse,
    listen: () => ({ also: () => {}, close: async () => {} }),
    renewalLink: async () => undefined,
    close: async () => {
      server.closed = true;
    },
  };
  return Object.assign(server, { driver });
}

function opening(driver: Driver, options: PostgresOptions = {}) {
  const clock = virtualClock();
  const said: OpenWait[] = [];
  let ended: unknown;
  finish(driver, { engine: "postgres", place: "test", durability: "process" }, { ...options, clock, onWaiting: (what) => said.push(what) }).then(
    () => {
      ended = "opened";
    },
    (error: unknown) => {
      ended = error;
    },
  );
  return { clock, said, ended: () => ended };
}

test("open waits for a server that is not up for half a minute, says so every five seconds, and then fails", async () => {
  const server = nobody();
  const { clock, said, ended } = opening(server.driver);
  await clock.advance(29_900);
  expect(ended()).toBeUndefined();
  expect(said.length).toBeGreaterThanOrEqual(5);
  expect(said.length).toBeLessThanOrEqual(7);
  expect(said[0]).toMatchObject({ for: "server", error: { code: "store_unreachable" }, waited: 0 });
  await clock.advance(200);
  expect(ended()).toMatchObject({ code: "store_unreachable" });
  expect(server.closed, "nothing stays open").toBe(true);
});

test("open waits for ever where it is told to, and looks at least once a second", async () => {
  const server = nobody("57P03");
  const { clock, ended } = opening(server.driver, { startupWait: "forever" });
  await clock.advance(3_600_000);
  expect(ended()).toBeUndefined();
  expect(server.asked).toBeGreaterThan(3_600);
  expect(server.asked).toBeLessThan(4 * 3_600);
});

test("open waits for as long as it is told to, and for a server that refuses the login not at all", async () => {
  const brief = opening(nobody().driver, { startupWait: "2s" });
  await brief.clock.advance(2_000);
  expect(brief.ended()).toMatchObject({ code: "store_unreachable" });
  const denied = opening(nobody("28P01").driver, { startupWait: "forever" });
  await denied.clock.quiet();
  expect(denied.ended()).toMatchObject({ code: "store_denied" });
});
