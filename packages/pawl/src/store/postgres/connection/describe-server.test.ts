import { expect, test } from "vitest";
import type { DriverRow } from "../drivers/driver.js";
import { describeServer } from "./describe-server.js";

const serverOf = (version: string, major: number) => ({
  query: async <R extends DriverRow>() => [{ version, major, safe: true }] as readonly DriverRow[] as readonly R[],
});

test("a Postgres older than 15 is refused with its version, and what is needed", async () => {
  await expect(describeServer(serverOf("14.12 (Debian 14.12-1)", 14))).rejects.toMatchObject({
    code: "store_too_old",
    message: expect.stringContaining("Postgres 14.12 (Debian 14.12-1)"),
  });
});

test("Postgres 15 and newer ones are described", async () => {
  expect(await describeServer(serverOf("15.18", 15))).toEqual({ version: "15.18", safe: true });
  expect(await describeServer(serverOf("19beta1", 19))).toEqual({ version: "19beta1", safe: true });
});
