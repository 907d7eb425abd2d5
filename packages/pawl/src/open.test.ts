import { resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { open, storeLocationOf } from "./open.js";

describe("a URL", () => {
  test.each([
    ["memory:", { kind: "memory" }],
    ["./data", { kind: "folder", folder: resolve("data") }],
    ["../data", { kind: "folder", folder: resolve("../data") }],
    [".", { kind: "folder", folder: resolve(".") }],
    ["/var/lib/pawl", { kind: "folder", folder: "/var/lib/pawl" }],
    ["file:data", { kind: "folder", folder: resolve("data") }],
    ["file:///var/lib/a%20b", { kind: "folder", folder: "/var/lib/a b" }],
    ["postgres://u:p@host/db?sslmode=require", { kind: "postgres", url: "postgres://u:p@host/db?sslmode=require" }],
    ["postgresql:///db", { kind: "postgres", url: "postgresql:///db" }],
  ])("%s is a place", (url, place) => {
    expect(storeLocationOf(url)).toEqual(place);
  });

  test.each(["", "data", "memory", "redis://localhost", "https://", "mysql://localhost/x", "./a\u0000b", "file:", undefined, 7, {}])(
    "%j is refused, and says what can be used",
    async (url) => {
      await expect(open(url as string)).rejects.toMatchObject({
        code: "store_url_invalid",
        message: expect.stringMatching(/memory:.*postgres:\/\//),
      });
    },
  );

  test.each(["redis://user:hunter2@localhost", "https://key:hunter2@pawl.example/x@y"])("%s is refused without telling its secret", async (url) => {
    const error: unknown = await open(url).catch((caught: unknown) => caught);
    expect(JSON.stringify([error, String(error)])).not.toContain("hunter2");
  });
});
