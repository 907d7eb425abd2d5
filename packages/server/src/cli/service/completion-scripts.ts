import type { Command } from "commander";

export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

/** What can be typed after a command: its subcommands and its flags, with what each is for. */
export interface CommandNode {
  readonly path: readonly string[];
  readonly words: readonly CompletionWord[];
  readonly flags: readonly CompletionWord[];
}
export interface CompletionWord {
  readonly name: string;
  readonly what: string;
  /** what its value may be, where that is known */
  readonly choices?: readonly string[];
}

export function treeOf(program: Command, path: readonly string[] = []): readonly CommandNode[] {
  const words = program.commands.map((command) => ({ name: command.name(), what: command.description() }));
  const flags = [
    ...program.options.map(({ long, description, argChoices }) => ({
      name: long ?? "",
      what: description,
      ...(argChoices === undefined ? {} : { choices: argChoices }),
    })),
    { name: "--help", what: "what there is" },
  ];
  const choices = program.registeredArguments.flatMap(({ argChoices = [] }) => argChoices.map((name) => ({ name, what: "" })));
  return [{ path, words: [...words, ...choices], flags }, ...program.commands.flatMap((command) => treeOf(command, [...path, command.name()]))];
}

/** A script that needs nothing of us when somebody presses tab: all is in it. */
export function scriptFor(shell: Shell, tree: readonly CommandNode[]): string {
  return { bash, zsh, fish }[shell](tree);
}

const caseOf = (path: readonly string[]) => `"${path.join(" ")}"`;

/** What a flag with known values may be followed by. */
function valuesOf(tree: readonly CommandNode[]): readonly { readonly after: string; readonly choices: readonly string[] }[] {
  return tree.flatMap(({ path, flags }) =>
    flags.flatMap(({ name, choices }) => (choices === undefined ? [] : [{ after: [...path, name].join(" "), choices }])),
  );
}

function bash(tree: readonly CommandNode[]): string {
  const values = valuesOf(tree).map(
    ({ after, choices }) => `    "${after}") COMPREPLY=( $(compgen -W "${choices.join(" ")}" -- "$word") ); return ;;`,
  );
  return `# bash completion of pawl
_pawl() {
  local word="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" path="" one
  for one in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$path $one" in
${tree
  .filter(({ path }) => path.length > 0)
  .map(({ path }) => `      "${path.length === 1 ? ` ${path[0]}` : path.join(" ")}") path="${path.join(" ")}" ;;`)
  .join("\n")}
    esac
  done
  case "$path $before" in
${values.join("\n")}
  esac
  case "$path" in
${tree
  .map(
    ({ path, words, flags }) =>
      `    ${caseOf(path)}) COMPREPLY=( $(compgen -W "${[...words, ...flags].map(({ name }) => name).join(" ")}" -- "$word") ) ;;`,
  )
  .join("\n")}
  esac
}
complete -o default -F _pawl pawl
`;
}

function zsh(tree: readonly CommandNode[]): string {
  const quote = (text: string) => text.replaceAll("'", "'\\''").replaceAll(":", "\\:");
  return `#compdef pawl
# zsh completion of pawl
_pawl() {
  local -a list
  local at="" one
  for one in "\${(@)words[2,CURRENT-1]}"; do
    case "$at $one" in
${tree
  .filter(({ path }) => path.length > 0)
  .map(({ path }) => `      "${path.length === 1 ? ` ${path[0]}` : path.join(" ")}") at="${path.join(" ")}" ;;`)
  .join("\n")}
    esac
  done
  case "$at $words[CURRENT-1]" in
${valuesOf(tree)
  .map(({ after, choices }) => `    "${after}") compadd -- ${choices.join(" ")}; return ;;`)
  .join("\n")}
  esac
  case "$at" in
${tree
  .map(
    ({ path, words, flags }) =>
      `    ${caseOf(path)}) list=(${[...words, ...flags].map(({ name, what }) => `'${quote(name)}:${quote(what)}'`).join(" ")}) ;;`,
  )
  .join("\n")}
  esac
  _describe 'pawl' list || _files
}
if [ "$funcstack[1]" = "_pawl" ]; then _pawl "$@"; else compdef _pawl pawl; fi
`;
}

function fish(tree: readonly CommandNode[]): string {
  const quote = (text: string) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
  const lines = tree.flatMap(({ path, words, flags }) => {
    const when = quote(`__pawl_at ${path.join(" ")}`.trim());
    return [
      ...words.map(({ name, what }) => `complete -c pawl -n ${when} -f -a ${name} -d ${quote(what)}`),
      ...flags.map(
        ({ name, what, choices }) =>
          `complete -c pawl -n ${when} -l ${name.replace(/^--/, "")} -d ${quote(what)}${choices === undefined ? "" : ` -x -a ${quote(choices.join(" "))}`}`,
      ),
    ];
  });
  const paths = tree.filter(({ path }) => path.length > 0).map(({ path }) => quote(path.join(" ")));
  return `# fish completion of pawl
function __pawl_at
  set -l path
  for word in (commandline -opc)[2..-1]
    if contains -- (string join -- ' ' $path $word) ${paths.join(" ")}
      set path $path $word
    end
  end
  test "$path" = "$argv"
end
${lines.join("\n")}
`;
}
