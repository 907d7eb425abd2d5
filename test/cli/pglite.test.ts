import { describe, expect, test } from "vitest";
import { open } from "../../packages/pawl/src/index.js";
import { pawl } from "../support/cli.js";
import { temporaryFolder } from "../support/folder.js";

describe("the command line", () => {
  test("works on a folder with PGlite, one command after the other", { timeout: 180_000 }, async () => {
    using data = temporaryFolder();
    await (await open(data.path, { engine: "pglite", maintenance: false })).close();
    const { out } = await pawl("enqueue", "late", "--store", data.path);
    expect((await pawl("jobs", "list", "--store", data.path)).out).toMatch(new RegExp(`^${out.trim()}\tready\tlate\t`));
  });
});
