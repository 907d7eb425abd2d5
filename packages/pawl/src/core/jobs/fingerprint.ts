import { hash32 } from "../values/hash.js";
import type { Failure } from "./failure.js";

/** What deaths of one cause have in common: 16 hex digits, the same for ever, since they are stored. */
export type Fingerprint = string & { readonly __fingerprint: unique symbol };

/** What is looked at: the task, the class, the message without what differs from job to job, and where it was thrown. */
export function fingerprintOf(task: string, failure: Pick<Failure, "kind" | "name" | "message" | "stack" | "fingerprint">): Fingerprint {
  if (failure.fingerprint !== undefined) return failure.fingerprint;
  const text = [task, failure.kind, failure.name, maskedMessage(failure.message), topFrame(failure.stack)].join("\u0001");
  return [hash32(text), hash32(`again\u0001${text}`)].map((half) => half.toString(16).padStart(8, "0")).join("") as Fingerprint;
}

export function isFingerprint(text: unknown): text is Fingerprint {
  return typeof text === "string" && /^[0-9a-f]{16}$/.test(text);
}

/** Longer ones differ in their data, and the beginning says enough. */
const LONGEST = 500;

/** In this order: what is quoted may hold ids, and ids hold numbers. */
const MASKS: readonly (readonly [what: RegExp, mask: string])[] = [
  [/"[^"\n]*"|`[^`\n]*`|(?<![\p{L}\p{N}])'[^'\n]*'(?![\p{L}\p{N}])/gu, "<text>"],
  [/[^\s@<>"']+@[^\s@<>"']+\.[a-z]{2,}/gi, "<address>"],
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, "<id>"],
  // Six or more letters and digits with both among them: a hash, a key, a token.
  [/(?<![\p{L}\p{N}_])(?=[a-z]*\d)(?=\d*[a-z])[a-z\d_]{6,}(?![\p{L}\p{N}_])/giu, "<id>"],
  [/\d+(?:[.,:]\d+)*/g, "<n>"],
];

/** A message without numbers, ids, addresses and quoted parts, in one line. */
export function maskedMessage(message: string): string {
  let text = message.slice(0, LONGEST).replace(/\s+/g, " ").trim();
  for (const [what, mask] of MASKS) text = text.replace(what, mask);
  return text;
}

/**
 * The function and file that threw: the first line of the stack that is neither of Node nor of a package. Without line
 * and folder, so that a deploy, or another machine, does not make another cause out of it.
 */
function topFrame(stack = ""): string {
  const frames = stack.split("\n").filter((line) => /^\s+at /.test(line));
  const own = frames.find((line) => !/node_modules|\(node:|at node:/.test(line)) ?? frames[0] ?? "";
  const [, name = "", position = own] = /^\s+at (?:(.+?) )?\(?([^()]*?)\)?$/.exec(own) ?? [];
  const file = position.replace(/(?::\d+){1,2}$/, "").replace(/^.*[/\\]/, "");
  return `${name.replace(/^async /, "")} ${file}`.trim();
}
