import { isAbsolute, resolve } from "node:path";

/** Where a secret is kept. The secret itself never stands in flags, files or logs of ours. */
export type Reference =
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "env"; readonly name: string }
  /** run as it stands, without a shell */
  | { readonly kind: "command"; readonly words: readonly string[] };

export const REFERENCE_HELP = "say where it is kept: file:PATH, env:NAME or command:PROGRAM ARGUMENTS";

/** Reads a reference; undefined for what is none, which may be the secret itself and is repeated nowhere. */
export function referenceOf(text: string, folder: string): Reference | undefined {
  const [, kind, rest = ""] = /^(file|env|command):(.+)$/s.exec(text) ?? [];
  switch (kind) {
    case "file":
      return { kind, path: isAbsolute(rest) ? rest : resolve(folder, rest) };
    case "env":
      return /^\w+$/.test(rest) ? { kind, name: rest } : undefined;
    case "command": {
      const words = splitWords(rest);
      return words === undefined || words.length === 0 ? undefined : { kind, words };
    }
    default:
      return undefined;
  }
}

/** How it is called in what people read: the arguments of a command may be nobody's business. */
export function nameOf(reference: Reference): string {
  switch (reference.kind) {
    case "file":
      return `file:${reference.path}`;
    case "env":
      return `env:${reference.name}`;
    case "command":
      return `command:${reference.words[0]}`;
  }
}

/** Words apart, with quotes around those that hold blanks; nothing else means anything. Undefined if a quote stays open. */
export function splitWords(text: string): readonly string[] | undefined {
  const words: string[] = [];
  const rest = text.replace(/\s*((?:"[^"]*"|'[^']*'|[^\s"'])+)/gy, (_, word: string) => {
    words.push(word.replace(/"([^"]*)"|'([^']*)'/g, (_, double?: string, single?: string) => double ?? single ?? ""));
    return "";
  });
  return rest.trim() === "" ? words : undefined;
}
