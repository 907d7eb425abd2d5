import type { Failure } from "./failure.js";

/**
 * The folders of an absolute path, a drive and `file://` before them, to the last separator of its line: folders may have
 * blanks in their names. What follows a letter or a colon is part of a name or of a URL.
 */
const FOLDERS = /(?<![\w:/\\.])(?:file:\/\/)?(?:\/?[A-Za-z]:)?[\\/].*[\\/]/g;
/** From here on a path says which package, and not where that is. */
const PACKAGE = /.*[\\/](node_modules[\\/].*)$/;

/**
 * A failure whose stacks name functions, files and lines, and not the folders they are in: where a server keeps its code is
 * not for tenants to know. What was thrown says in its message is its author's, and stays.
 */
export function withoutFolders(failure: Failure): Failure {
  const { causes } = failure;
  return { ...bare(failure), ...(causes === undefined ? {} : { causes: causes.map(bare) }) };
}

function bare<T extends Pick<Failure, "name" | "message" | "stack">>(thrown: T): T {
  const { name, message, stack } = thrown;
  if (stack === undefined) return thrown;
  // V8 begins with what was thrown; that may name paths of URLs, and is shown as it is anyway.
  const head = `${name}: ${message}`;
  const prefix = stack.startsWith(head) ? head : "";
  return { ...thrown, stack: prefix + stack.slice(prefix.length).replace(FOLDERS, (folders) => PACKAGE.exec(folders)?.[1] ?? "") };
}
