import { readFileSync } from "node:fs";
import { basename, dirname, extname } from "node:path";
import { isModule } from "./load-tasks.js";

/**
 * Which of the files the tasks are made of: those they are loaded from, and those that one of these names in a text, as
 * imports do, and whoever reads a file. By the name alone, so that every way to write a path counts: this may find one too
 * many, which costs a reload, but none too few.
 */
export function moduleDependencies(roots: readonly string[], files: readonly string[]): ReadonlySet<string> {
  const found = new Set<string>();
  const rest = new Set(files);
  for (let next: readonly string[] = roots; next.length > 0; ) {
    for (const file of next) {
      found.add(file);
      rest.delete(file);
    }
    const texts = next.filter(isModule).map(textOf);
    next = [...rest].filter((file) => texts.some((text) => namesOf(file).some((name) => name.test(text))));
  }
  return found;
}

/** A module may be named without its extension or by another one (`./mail.js` is mail.ts), or by its folder. */
function namesOf(file: string): readonly RegExp[] {
  const name = basename(file);
  if (!isModule(file)) return [quotedName(name)];
  const stem = basename(name, extname(name));
  return [quotedName(stem, "(?:\\.\\w+)?"), ...(stem === "index" ? [quotedName(basename(dirname(file)), "/?")] : [])];
}

function quotedName(name: string, ending = ""): RegExp {
  return new RegExp(`["'\`/]${name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}${ending}["'\`]`);
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
