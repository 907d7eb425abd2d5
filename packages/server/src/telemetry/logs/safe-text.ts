const MAX_TEXT_CHARACTERS = 2_000;

/**
 * Text that others wrote (names, messages of errors), for a line of a log: what would end the line, colour the terminal
 * or turn the text around is shown as what it is (S73), and what looks like a secret is not shown at all (S52).
 */
export function safeText(text: string): string {
  const short = text.length > MAX_TEXT_CHARACTERS ? `${text.slice(0, MAX_TEXT_CHARACTERS)}…` : text;
  return redacted(short).replace(UNSAFE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Controls (C0, DEL, C1), separators of lines, marks of direction. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: those are the ones meant
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

const HIDDEN = "[hidden]";

const SECRETS: readonly (readonly [RegExp, string])[] = [
  // of URLs
  [/(:\/\/)[^/\s@]*@/g, `$1${HIDDEN}@`],
  [/\bpawl_[a-z][a-z0-9]*_[0-9A-Za-z]{16}_[0-9A-Za-z]+/g, HIDDEN],
  [/\bwhsec_[0-9A-Za-z+/=_-]+/g, HIDDEN],
  [/\b(bearer|basic)\s+[0-9A-Za-z._~+/=-]{6,}/gi, `$1 ${HIDDEN}`],
  [
    /\b(pass(?:word|wd|phrase)?|secret|token|api[_-]?key|authorization|pgpassword)(["']?\s*[=:]\s*["']?)(?!bearer|basic)[^\s"',;&]+/gi,
    `$1$2${HIDDEN}`,
  ],
];

export function redacted(text: string): string {
  return SECRETS.reduce((masked, [pattern, instead]) => masked.replace(pattern, instead), text);
}
