import { type Failure, failure } from "./failure.js";

/** How the stored text of a sealed value begins. It is a JSON string, so that it fits wherever JSON is kept. */
const MARK = '"pawl:sealed:1:';

/** What a value was sealed for: one job, every job of a schedule, or a target. */
export type Binding = "job" | "schedule" | "target";

const LETTERS: Readonly<Record<Binding, string>> = { job: "j", schedule: "s", target: "t" };

/** A sealed value in its parts. */
export interface Envelope {
  readonly binding: Binding;
  /** the id of the data key */
  readonly key: string;
  /** base64url: salt, initialisation vector, ciphertext, tag */
  readonly box: string;
}

/** Why a sealed value cannot be read: its key is not to be had here (perhaps elsewhere), is gone for good, or does not fit. */
export type Unreadable = "locked" | "shredded" | "altered";

export function isSealed(text: string | undefined): boolean {
  return text?.startsWith(MARK) === true;
}

export function sealedText({ binding, key, box }: Envelope): string {
  return `${MARK}${LETTERS[binding]}:${key}:${box}"`;
}

export function envelopeOf(text: string): Envelope | undefined {
  const [, letter, key, box] = /^"pawl:sealed:1:([jst]):([\w-]{1,64}):([\w-]+)"$/.exec(text) ?? [];
  const binding = (Object.keys(LETTERS) as readonly Binding[]).find((one) => LETTERS[one] === letter);
  return binding === undefined || key === undefined || box === undefined ? undefined : { binding, key, box };
}

/** What people see in its place. */
export const SEALED_VALUE = "(sealed)";

const REASONS: Readonly<Record<Unreadable, string>> = {
  locked: "this process has no master key for it",
  shredded: "its data key is gone",
  altered: "it is not what was sealed for this job",
};

export function unreadableReason(why: Unreadable): string {
  return REASONS[why];
}

/** As it is recorded of a job whose input does not open. It tells nothing of what is sealed, so that it is stored plain. */
export function unreadableFailure(why: Unreadable): Failure {
  return { ...failure("unreadable", `its input is sealed, and ${unreadableReason(why)}`), code: `payload_${why}` };
}

/** Whether a job was put off because whoever had it lacks the key. */
export function isLocked(recorded: Failure | undefined): boolean {
  return recorded?.kind === "unreadable" && recorded.code === "payload_locked";
}
