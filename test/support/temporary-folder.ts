import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A path in a folder of the test's own, gone at its end: `using data = temporaryFolder()`. */
export function temporaryFolder(): Disposable & { readonly path: string } {
  const folder = mkdtempSync(join(tmpdir(), "pawl-"));
  return { path: join(folder, "data"), [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) };
}
