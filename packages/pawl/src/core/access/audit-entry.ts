import { BOUNDS } from "../values/bounds.js";
import { checkKeys, checkObject, checkOneOf, invalid, show } from "../values/option.js";
import { cut } from "../values/truncate.js";

/**
 * The audit log: who asked for what, and whether it was let happen. Every tenant has a chain of its own, and so does the
 * store as a whole. Each entry holds the hash of the one before, so that none can be changed, left out or put in later
 * without all that follow being written anew, and that is told by anchors (`anchor.ts`).
 */
export interface AuditNote {
  /** chosen by the caller; the same again is the same entry */
  readonly id: string;
  /** whose chain it is in; undefined: that of the store as a whole */
  readonly tenant: string | undefined;
  /** who: `key:…`, `cli:…`, `anonymous` */
  readonly actor: string;
  /** what was asked for, as in `core/access/roles.ts` or in the words of whoever asks */
  readonly action: string;
  readonly outcome: AuditOutcome;
  /** of what: `job:…`, `queue:…`, `key:…` */
  readonly subject?: string;
  /** the id of the request it came with */
  readonly request?: string;
  /** where it came from */
  readonly address?: string;
  /** what else should be known: small, and never a secret */
  readonly details?: Readonly<Record<string, string | number | boolean | null>>;
}

export const AUDIT_OUTCOMES = ["allowed", "denied"] as const;
export type AuditOutcome = (typeof AUDIT_OUTCOMES)[number];

/** Where an entry is in its chain. */
export interface AuditLink {
  /** from 1, without gaps */
  readonly seq: number;
  /** ms; never before that of the entry before */
  readonly at: number;
  /** the hash of the entry before */
  readonly prev: string;
  readonly hash: string;
}

export type AuditEntry = AuditNote & AuditLink;

/** An entry as stored: its note in canonical form, which is what was hashed. */
export interface StoredEntry extends AuditLink {
  readonly tenant: string | undefined;
  readonly id: string;
  readonly body: string;
}

/** What the first entry of a chain follows. */
export const GENESIS = "0".repeat(64);

const FIELDS = [
  "id",
  "tenant",
  "actor",
  "action",
  "outcome",
  "subject",
  "request",
  "address",
  "details",
] as const satisfies readonly (keyof AuditNote)[];

/** One text per note: its fields in this order, the details by name, nothing between. */
export function canonical(note: AuditNote): string {
  const fields: Record<string, unknown> = {};
  for (const field of FIELDS) if (note[field] !== undefined) fields[field] = field === "details" ? sorted(note.details ?? {}) : note[field];
  return JSON.stringify(fields);
}

/** What the hash of an entry is taken of. Stores compose the same in their own language. */
export function hashedText({ prev, seq, at, body }: Omit<StoredEntry, "hash" | "tenant" | "id">): string {
  return `${prev}\n${seq}\n${at}\n${body}`;
}

export function entryOf({ tenant, seq, at, prev, hash, body }: StoredEntry): AuditEntry {
  return { ...(JSON.parse(body) as AuditNote), tenant, seq, at, prev, hash };
}

function sorted(details: NonNullable<AuditNote["details"]>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(details).sort(([a], [b]) => (a < b ? -1 : 1)));
}

export type Hash = (text: string) => string;

/** Where a chain is not what it says, and why. */
export interface AuditFault {
  readonly tenant: string | undefined;
  readonly seq: number;
  readonly why: /** its text, its place or its time is not what was hashed */
    | "edited"
    /** an entry is missing before it */
    | "missing"
    /** the chain ends before or after what its head says */
    | "head_mismatch"
    /** it is not what was anchored: the end was cut off, or all of it was written anew */
    | "anchor_mismatch";
}

/** Follows a chain from its first entry, page by page. */
export class ChainCheck {
  #seq = 0;
  #prev = GENESIS;
  constructor(
    readonly tenant: string | undefined,
    private readonly hash: Hash,
  ) {}

  get seq(): number {
    return this.#seq;
  }
  get head(): string {
    return this.#prev;
  }

  /** The first fault, if there is one. */
  follow(entry: StoredEntry): AuditFault | undefined {
    const fault = (why: AuditFault["why"]): AuditFault => ({ tenant: this.tenant, seq: entry.seq, why });
    if (entry.seq !== this.#seq + 1 || entry.prev !== this.#prev) return fault(entry.seq === this.#seq + 1 ? "edited" : "missing");
    if (entry.hash !== this.hash(hashedText(entry)) || !isOwn(entry)) return fault("edited");
    this.#seq = entry.seq;
    this.#prev = entry.hash;
    return undefined;
  }
}

/** A body that was moved here out of another chain, or with another id, hashes well and is still not this entry. */
function isOwn({ tenant, id, body }: StoredEntry): boolean {
  try {
    const note = JSON.parse(body) as AuditNote;
    return note.tenant === tenant && note.id === id && canonical(note) === body;
  } catch {
    return false;
  }
}

const NOTE_KEYS: ReadonlySet<string> = new Set(FIELDS);

/** A note as given, without its id. Long texts are cut: an entry must never fail for what a stranger sent. */
export function checkNote(given: unknown): Omit<AuditNote, "id"> {
  const note = checkObject("entry", given) as Omit<AuditNote, "id">;
  checkKeys(note, NOTE_KEYS, "entry.");
  const { tenant, actor, action, outcome, subject, request, address, details } = note;
  const text = (field: string, value: unknown) => {
    if (typeof value !== "string" || value === "") throw invalid(`entry.${field}`, `${show(value)} is not a text`);
    return storable(value);
  };
  return {
    tenant: tenant === undefined ? undefined : text("tenant", tenant),
    actor: text("actor", actor),
    action: text("action", action),
    outcome: checkOneOf("entry.outcome", outcome, AUDIT_OUTCOMES),
    ...(subject === undefined ? {} : { subject: text("subject", subject) }),
    ...(request === undefined ? {} : { request: text("request", request) }),
    ...(address === undefined ? {} : { address: text("address", address) }),
    ...(details === undefined ? {} : { details: checkDetails(details) }),
  };
}

function checkDetails(given: unknown): NonNullable<AuditNote["details"]> {
  const entries = Object.entries(checkObject("entry.details", given));
  if (entries.length > BOUNDS.auditDetails) throw invalid("entry.details", `there are more than ${BOUNDS.auditDetails}`);
  return Object.fromEntries(
    entries.map(([name, value]) => {
      if (value !== null && !["string", "boolean"].includes(typeof value) && !Number.isFinite(value))
        throw invalid(`entry.details.${name}`, `${show(value)} is not a text, a number, a boolean or null`);
      return [storable(name), typeof value === "string" ? storable(value) : value];
    }),
  ) as NonNullable<AuditNote["details"]>;
}

function storable(text: string): string {
  return cut(text, BOUNDS.auditText);
}
