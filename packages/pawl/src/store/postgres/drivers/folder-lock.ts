import { type Folder, openFolder, rememberEngine } from "../embedded/folder.js";
import { withLock } from "../embedded/lock.js";
import { deadlineIn } from "../embedded/wait.js";

/** Long enough to outlast someone who only looks, short enough to be told at once who is in the way. */
const PATIENCE_MS = 300;

/**
 * PGlite does not notice a second process in its folder and would destroy the data: this lock is held as long as the
 * database is open. Throws `folder_busy` with the pid of the process that has it; a dead one's lock is broken.
 */
export function lockFolder(path: string): Promise<{ readonly folder: Folder; release(): Promise<void> }> {
  const folder = openFolder(path, "pglite");
  return new Promise((resolve, reject) => {
    const held = withLock(folder, deadlineIn(PATIENCE_MS), () => {
      openFolder(path, "pglite"); // again, now that nobody else can make it theirs
      rememberEngine(folder, "pglite");
      return new Promise<void>((end) =>
        resolve({
          folder,
          release: () => {
            end();
            return held;
          },
        }),
      );
    });
    held.catch(reject);
  });
}
