import { type Failure, failure } from "../jobs/failure.js";

/** How the stored text of an encrypted value begins. It is a JSON string, so that it fits wherever JSON is kept. */
const PREFIX = '"pawl:encrypted:1:';

/** What a value was encrypted for: one job, every job of a schedule, or a target. */
export type Binding = "job" | "schedule" | "target";

const LETTERS: Readonly<Record<Binding, string>> = { job: "j", schedule: "s", target: "t" };

/** An encrypted value in its parts. */
export interface Envelope {
  readonly binding: Binding;
  /** the id of the data key */
  readonly key: string;
  /** base64url: salt, initialisation vector, ciphertext, tag */
  readonly box: string;
}

/** Why an encrypted value cannot be read: its key is not to be had here (perhaps elsewhere), is gone for good, or does not fit. */
export type UndecryptableReason = "locked" | "shredded" | "altered";

export function isEncrypted(text: string | undefined): boolean {
  return text?.startsWith(PREFIX) === true;
}

export function encryptedText({ binding, key, box }: Envelope): string {
  return `${PREFIX}${LETTERS[binding]}:${key}:${box}"`;
}

export function envelopeOf(text: string): Envelope | undefined {
  const [, letter, key, box] = /^"pawl:encrypted:1:([jst]):([\w-]{1,64}):([\w-]+)"$/.exec(text) ?? [];
  const binding = (Object.keys(LETTERS) as readonly Binding[]).find((one) => LETTERS[one] === letter);
  return binding === undefined || key === undefined || box === undefined ? undefined : { binding, key, box };
}

/** What people see in its place. */
export const ENCRYPTED_VALUE = "(encrypted)";

const UNDECRYPTABLE_TEXT: Readonly<Record<UndecryptableReason, string>> = {
  locked: "this process has no master key for it",
  shredded: "its data key is gone",
  altered: "it is not what was encrypted for this job",
};

export function undecryptableText(why: UndecryptableReason): string {
  return UNDECRYPTABLE_TEXT[why];
}

/** As it is recorded of a job whose input does not open. It tells nothing of what is encrypted, so that it is stored plain. */
export function undecryptableFailure(why: UndecryptableReason): Failure {
  return { ...failure("payload_undecryptable", `its input is encrypted, and ${undecryptableText(why)}`), code: `payload_${why}` };
}

/** Whether a job was put off because whoever had it lacks the key. */
export function isLocked(recorded: Failure | undefined): boolean {
  return recorded?.kind === "payload_undecryptable" && recorded.code === "payload_locked";
}
