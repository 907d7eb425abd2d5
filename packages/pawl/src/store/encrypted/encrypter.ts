import {
  type Binding,
  ENCRYPTED_VALUE,
  encryptedText,
  envelopeOf,
  isEncrypted,
  type UndecryptableReason,
} from "../../core/access/encrypted-value.js";
import type { Failure } from "../../core/jobs/failure.js";
import { fingerprintOf } from "../../core/jobs/fingerprint.js";
import { digitsOf, type IdSuffix, idSuffixOf, type JobId } from "../../core/jobs/id.js";
import type { JobOptions } from "../../core/jobs/job.js";
import type { Lane } from "../../core/jobs/lane.js";
import type { StoreTransaction } from "../port/index.js";
import type { DecryptionKey, EncryptionKey, KeyStore } from "./key-store.js";

type Field = "input" | "output" | "failure" | "progress" | "log" | "effect" | "secret";

/** Where a value belongs. It goes into what is authenticated, so that a value moved elsewhere does not open there. */
interface EncryptionContext {
  readonly field: Field;
  readonly binding: Binding;
  /** the digits of the id suffix of the job's id, or the name of the schedule or of the target's task; of an effect, its own name too */
  readonly subject: string;
  /** of inputs: so that no other handler gets it */
  readonly task?: string;
}

export type Decrypted = { readonly text: string } | { readonly unreadable: UndecryptableReason };

/** Of a job: its input as it was enqueued or redriven. */
export function inputContext(task: string, idSuffix: IdSuffix): EncryptionContext {
  return { field: "input", binding: "job", subject: digitsOf(idSuffix), task };
}

/** Of a schedule: the input that each of its jobs is given as it stands. */
export function scheduleContext(task: string, schedule: string): EncryptionContext {
  return { field: "input", binding: "schedule", subject: schedule, task };
}

/** Of a target: what its deliveries are signed with. */
export function targetContext(task: string): EncryptionContext {
  return { field: "secret", binding: "target", subject: task };
}

export function jobContext(field: Exclude<Field, "input" | "secret">, id: JobId, name = ""): EncryptionContext {
  const job = digitsOf(idSuffixOf(id));
  return { field, binding: "job", subject: name === "" ? job : `${job} ${name}` };
}

/** Encrypts values of some tenants; made for one call of the store. */
export class Encrypter {
  private constructor(private readonly keys: ReadonlyMap<string, EncryptionKey>) {}

  static async of(keyStore: KeyStore, tenants: Iterable<string>, tx?: StoreTransaction): Promise<Encrypter> {
    return new Encrypter(await keyStore.encryptionKeys(tenants, tx));
  }

  encrypt(text: string, tenant: string, context: EncryptionContext): string {
    const { id, key } = this.keys.get(tenant) as EncryptionKey;
    return encryptedText({ binding: context.binding, key: id, box: key.encrypt(text, authenticatedText(id, tenant, context)) });
  }

  /** What tells deaths apart stays readable; what may hold data does not. */
  failure(failed: Failure, { tenant, task }: Lane, id: JobId): Failure {
    const { kind, name, code, message, stack, causes } = failed;
    const encrypted = this.encrypt(JSON.stringify({ message, stack, causes }), tenant, jobContext("failure", id));
    return { kind, name, message: encrypted, ...(code === undefined ? {} : { code }), fingerprint: fingerprintOf(task, failed) };
  }
}

/** Opens values; made for one call of the store, with the keys that its answer needs. */
export class Decrypter {
  private constructor(private readonly keys: ReadonlyMap<string, DecryptionKey | UndecryptableReason>) {}

  /** For these texts, those that are not encrypted among them. Where none is, nothing is asked of anybody. */
  static async of(keyStore: KeyStore, texts: Iterable<string | undefined>): Promise<Decrypter> {
    const ids = new Set<string>();
    for (const text of texts) {
      const envelope = isEncrypted(text) ? envelopeOf(text as string) : undefined;
      if (envelope !== undefined) ids.add(envelope.key);
    }
    return new Decrypter(ids.size === 0 ? new Map() : await keyStore.decryptionKeys(ids));
  }

  /** What is not encrypted was stored before encryption was asked for, and is as it is. `tenant`: of the row it was found in. */
  decrypt(text: string, context: Omit<EncryptionContext, "binding"> & { readonly binding?: Binding }, tenant?: string): Decrypted {
    if (!isEncrypted(text)) return { text };
    const envelope = envelopeOf(text);
    const key = envelope && this.keys.get(envelope.key);
    if (envelope === undefined || key === undefined) return { unreadable: "altered" };
    if (typeof key === "string") return { unreadable: key };
    if ((tenant ?? key.tenant) !== key.tenant || envelope.binding !== (context.binding ?? "job")) return { unreadable: "altered" };
    const decrypted = key.key.decrypt(envelope.box, authenticatedText(envelope.key, key.tenant, { ...context, binding: envelope.binding }));
    return decrypted === undefined ? { unreadable: "altered" } : { text: decrypted };
  }

  /** A job's input: its own, or that of the schedule whose tick made it. */
  input(text: string, { id, lane, options }: { readonly id: JobId; readonly lane: Lane; readonly options: JobOptions | undefined }): Decrypted {
    const schedule = options?.tick?.schedule;
    const bySchedule = schedule !== undefined && isEncrypted(text) && envelopeOf(text)?.binding === "schedule";
    return this.decrypt(text, bySchedule ? scheduleContext(lane.task, schedule) : inputContext(lane.task, idSuffixOf(id)), lane.tenant);
  }

  /** Its text where that can be had, and otherwise as it is stored. */
  text(text: string, context: EncryptionContext, tenant?: string): string {
    const decrypted = this.decrypt(text, context, tenant);
    return "text" in decrypted ? decrypted.text : text;
  }

  failure(failed: Failure, id: JobId): Failure {
    if (!isEncrypted(failed.message)) return failed;
    const decrypted = this.decrypt(failed.message, jobContext("failure", id));
    const { fingerprint: _, ...rest } = failed;
    if ("unreadable" in decrypted) return { ...rest, message: ENCRYPTED_VALUE };
    return { ...rest, ...(JSON.parse(decrypted.text) as Pick<Failure, "message" | "stack" | "causes">) };
  }
}

/** What is authenticated beside the text. */
function authenticatedText(key: string, tenant: string, { field, binding, subject, task = "" }: EncryptionContext): string {
  return JSON.stringify(["pawl", key, tenant, field, binding, subject, task]);
}
