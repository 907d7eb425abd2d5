import { readdirSync, statSync } from "node:fs";
import { join, relative } from "node:path";

/** ms between looks. Looking finds what watching misses: files replaced by their editor, network folders, containers. */
const LOOK = 300;
const IGNORED = new Set(["node_modules", ".git", "dist"]);

/**
 * Calls back when files in the folders have changed and are quiet again, until the answer is called. Only those count that
 * `matter`, which is given all there are: before the change or after it.
 */
export function watchFolders(
  folders: readonly string[],
  matter: (files: readonly string[]) => ReadonlySet<string>,
  changed: (files: readonly string[]) => void,
): () => void {
  let before = snapshotOf(folders);
  let mattered = matter([...before.keys()]);
  const seen = new Set<string>();
  const timer = setInterval(() => {
    const now = snapshotOf(folders);
    const differing = [...new Set([...before.keys(), ...now.keys()])].filter((file) => before.get(file) !== now.get(file));
    before = now;
    for (const file of differing) seen.add(file);
    // Editors write in several steps: it is over when a look finds nothing new.
    if (differing.length > 0 || seen.size === 0) return;
    const matters = matter([...now.keys()]);
    const files = [...seen].filter((file) => mattered.has(file) || matters.has(file)).sort();
    seen.clear();
    mattered = matters;
    if (files.length > 0) changed(files);
  }, LOOK);
  timer.unref();
  return () => clearInterval(timer);
}

/** Every file by its path, with what changes when it does. */
function snapshotOf(folders: readonly string[]): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const look = (folder: string): void => {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (entry.isDirectory() && !IGNORED.has(entry.name)) look(path);
      else if (entry.isFile()) found.set(relative("", path), markOf(path));
    }
  };
  for (const folder of new Set(folders)) look(folder);
  return found;
}

function markOf(path: string): string {
  const { ino, mtimeMs, size } = statSync(path);
  return `${ino} ${mtimeMs} ${size}`;
}
