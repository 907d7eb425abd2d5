import type { Failure } from "../../core/failure.js";
import { fingerprintOf } from "../../core/fingerprint.js";
import { digitsOf, type IdTail, type JobId, tailOf } from "../../core/id.js";
import type { JobOptions } from "../../core/job.js";
import type { Lane } from "../../core/lane.js";
import { type Binding, envelopeOf, isSealed, SEALED_VALUE, sealedText, type Unreadable } from "../../core/sealed.js";
import type { ForeignTransaction } from "../port.js";
import type { Opening, Sealing, Vault } from "./vault.js";

type Field = "input" | "output" | "failure" | "progress" | "log" | "effect" | "secret";

/** Where a value belongs. It goes into what is authenticated, so that a value moved elsewhere does not open there. */
interface Place {
  readonly field: Field;
  readonly binding: Binding;
  /** the digits of the tail of the job's id, or the name of the schedule or of the target's task; of an effect, its own name too */
  readonly subject: string;
  /** of inputs: so that no other handler gets it */
  readonly task?: string;
}

export type Opened = { readonly text: string } | { readonly unreadable: Unreadable };

/** Of a job: its input as it was enqueued or redriven. */
export function inputPlace(task: string, tail: IdTail): Place {
  return { field: "input", binding: "job", subject: digitsOf(tail), task };
}

/** Of a schedule: the input that each of its jobs is given as it stands. */
export function schedulePlace(task: string, schedule: string): Place {
  return { field: "input", binding: "schedule", subject: schedule, task };
}

/** Of a target: what its deliveries are signed with. */
export function targetPlace(task: string): Place {
  return { field: "secret", binding: "target", subject: task };
}

export function jobPlace(field: Exclude<Field, "input" | "secret">, id: JobId, name = ""): Place {
  const job = digitsOf(tailOf(id));
  return { field, binding: "job", subject: name === "" ? job : `${job} ${name}` };
}

/** Seals values of some tenants; made for one call of the store. */
export class Sealer {
  private constructor(private readonly keys: ReadonlyMap<string, Sealing>) {}

  static async of(vault: Vault, tenants: Iterable<string>, tx?: ForeignTransaction): Promise<Sealer> {
    return new Sealer(await vault.sealing(tenants, tx));
  }

  seal(text: string, tenant: string, place: Place): string {
    const { id, key } = this.keys.get(tenant) as Sealing;
    return sealedText({ binding: place.binding, key: id, box: key.seal(text, about(id, tenant, place)) });
  }

  /** What tells deaths apart stays readable; what may hold data does not. */
  failure(given: Failure, { tenant, task }: Lane, id: JobId): Failure {
    const { kind, name, code, message, stack, causes } = given;
    const sealed = this.seal(JSON.stringify({ message, stack, causes }), tenant, jobPlace("failure", id));
    return { kind, name, message: sealed, ...(code === undefined ? {} : { code }), fingerprint: fingerprintOf(task, given) };
  }
}

/** Opens values; made for one call of the store, with the keys that its answer needs. */
export class Opener {
  private constructor(private readonly keys: ReadonlyMap<string, Opening | Unreadable>) {}

  /** For these texts, those that are not sealed among them. Where none is, nothing is asked of anybody. */
  static async of(vault: Vault, texts: Iterable<string | undefined>): Promise<Opener> {
    const ids = new Set<string>();
    for (const text of texts) {
      const envelope = isSealed(text) ? envelopeOf(text as string) : undefined;
      if (envelope !== undefined) ids.add(envelope.key);
    }
    return new Opener(ids.size === 0 ? new Map() : await vault.opening(ids));
  }

  /** What is not sealed was stored before sealing was asked for, and is as it is. `tenant`: of the row it was found in. */
  open(text: string, place: Omit<Place, "binding"> & { readonly binding?: Binding }, tenant?: string): Opened {
    if (!isSealed(text)) return { text };
    const envelope = envelopeOf(text);
    const known = envelope && this.keys.get(envelope.key);
    if (envelope === undefined || known === undefined) return { unreadable: "altered" };
    if (typeof known === "string") return { unreadable: known };
    if ((tenant ?? known.tenant) !== known.tenant || envelope.binding !== (place.binding ?? "job")) return { unreadable: "altered" };
    const opened = known.key.open(envelope.box, about(envelope.key, known.tenant, { ...place, binding: envelope.binding }));
    return opened === undefined ? { unreadable: "altered" } : { text: opened };
  }

  /** A job's input: its own, or that of the schedule whose tick made it. */
  input(text: string, { id, lane, options }: { readonly id: JobId; readonly lane: Lane; readonly options: JobOptions | undefined }): Opened {
    const schedule = options?.tick?.schedule;
    const bySchedule = schedule !== undefined && isSealed(text) && envelopeOf(text)?.binding === "schedule";
    return this.open(text, bySchedule ? schedulePlace(lane.task, schedule) : inputPlace(lane.task, tailOf(id)), lane.tenant);
  }

  /** Its text where that can be had, and otherwise as it is stored. */
  text(text: string, place: Place, tenant?: string): string {
    const opened = this.open(text, place, tenant);
    return "text" in opened ? opened.text : text;
  }

  failure(given: Failure, id: JobId): Failure {
    if (!isSealed(given.message)) return given;
    const opened = this.open(given.message, jobPlace("failure", id));
    const { fingerprint: _, ...rest } = given;
    if ("unreadable" in opened) return { ...rest, message: SEALED_VALUE };
    return { ...rest, ...(JSON.parse(opened.text) as Pick<Failure, "message" | "stack" | "causes">) };
  }
}

/** What is authenticated beside the text. */
function about(key: string, tenant: string, { field, binding, subject, task = "" }: Place): string {
  return JSON.stringify(["pawl", key, tenant, field, binding, subject, task]);
}
