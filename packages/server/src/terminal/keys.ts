/** A key as it is named here, or the letter it types. */
export type Key = "up" | "down" | "page-up" | "page-down" | "home" | "end" | "enter" | "escape" | "backspace" | "quit" | (string & {});

const NAMED_KEYS: Readonly<Record<string, Key>> = {
  "\x1b[A": "up",
  "\x1bOA": "up",
  "\x1b[B": "down",
  "\x1bOB": "down",
  "\x1b[C": "enter",
  "\x1b[D": "escape",
  "\x1b[5~": "page-up",
  "\x1b[6~": "page-down",
  "\x1b[H": "home",
  "\x1b[1~": "home",
  "\x1b[F": "end",
  "\x1b[4~": "end",
  "\r": "enter",
  "\n": "enter",
  "\x1b": "escape",
  "\x7f": "backspace",
  "\b": "backspace",
  "\x03": "quit",
};

// biome-ignore lint/suspicious/noControlCharactersInRegex: what a terminal sends for keys begins with one
const ONE_KEY = /\x1b\[\d*(?:;\d+)*[A-Za-z~]|\x1bO[A-Z]|./gsu;

/** The keys in what a terminal sent, which may be several at once over a slow link. Those without a name here are left out. */
export function keysOf(text: string): readonly Key[] {
  return [...text.matchAll(ONE_KEY)].flatMap(([sent]) => NAMED_KEYS[sent] ?? (sent.length <= 2 && sent >= " " ? [sent] : []));
}
