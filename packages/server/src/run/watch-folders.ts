import { readdirSync, statSync } from "node:fs";
import { join, relative } from "node:path";

/** ms between looks. Looking finds what watching misses: files replaced by their editor, network folders, containers. */
const SCAN_INTERVAL_MS = 300;
const IGNORED_FOLDERS = new Set(["node_modules", ".git", "dist"]);

/**
 * Calls back when files in the folders have changed and are quiet again, until the answer is called. Only those count that
 * `relevantOf`, which is given all there are: before the change or after it.
 */
export function watchFolders(
  folders: readonly string[],
  relevantOf: (files: readonly string[]) => ReadonlySet<string>,
  changed: (files: readonly string[]) => void,
): () => void {
  let before = scanFolders(folders);
  let relevantBefore = relevantOf([...before.keys()]);
  const seen = new Set<string>();
  const timer = setInterval(() => {
    const now = scanFolders(folders);
    const differing = [...new Set([...before.keys(), ...now.keys()])].filter((file) => before.get(file) !== now.get(file));
    before = now;
    for (const file of differing) seen.add(file);
    // Editors write in several steps: it is over when a look finds nothing new.
    if (differing.length > 0 || seen.size === 0) return;
    const relevant = relevantOf([...now.keys()]);
    const files = [...seen].filter((file) => relevantBefore.has(file) || relevant.has(file)).sort();
    seen.clear();
    relevantBefore = relevant;
    if (files.length > 0) changed(files);
  }, SCAN_INTERVAL_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/** Every file by its path, with what changes when it does. */
function scanFolders(folders: readonly string[]): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const scan = (folder: string): void => {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (entry.isDirectory() && !IGNORED_FOLDERS.has(entry.name)) scan(path);
      else if (entry.isFile()) found.set(relative("", path), fileVersion(path));
    }
  };
  for (const folder of new Set(folders)) scan(folder);
  return found;
}

function fileVersion(path: string): string {
  const { ino, mtimeMs, size } = statSync(path);
  return `${ino} ${mtimeMs} ${size}`;
}
