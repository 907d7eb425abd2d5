import { describe, expect, test } from "vitest";
import { open } from "../../packages/pawl/src/index.js";
import { runPawl } from "../support/run-cli.js";
import { temporaryFolder } from "../support/temporary-folder.js";

describe("the command line", () => {
  test("works on a folder with PGlite, one command after the other", { timeout: 180_000 }, async () => {
    using data = temporaryFolder();
    await (await open(data.path, { engine: "pglite", maintenance: false })).close();
    const { out } = await runPawl("enqueue", "late", "--store", data.path);
    expect((await runPawl("jobs", "list", "--store", data.path)).out).toMatch(new RegExp(`^${out.trim()}\tready\tlate\t`));
  });
});
