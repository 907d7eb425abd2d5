import type { JobRequest, NewJob } from "../../core/jobs/job.js";
import type { StoreTransaction } from "../port/index.js";
import { Encrypter, inputContext } from "./encrypter.js";
import type { KeyStore } from "./key-store.js";

/** The jobs with encrypted inputs. A request's digest would tell whether a guess at the input is right, so it goes in under a key, too. */
export async function encryptInputs(keyStore: KeyStore, jobs: readonly NewJob[], tx: StoreTransaction | undefined): Promise<readonly NewJob[]> {
  const encrypter = await Encrypter.of(
    keyStore,
    jobs.map(({ lane }) => lane.tenant),
    tx,
  );
  const encrypted: NewJob[] = [];
  for (const job of jobs) {
    const { lane, idSuffix, idempotencyKey } = job;
    const input = encrypter.encrypt(job.input, lane.tenant, inputContext(lane.task, idSuffix));
    encrypted.push(
      idempotencyKey === undefined
        ? { ...job, input }
        : { ...job, input, idempotencyKey: await encryptRequest(keyStore, lane.tenant, idempotencyKey, tx) },
    );
  }
  return encrypted;
}

export async function encryptRequest(keyStore: KeyStore, tenant: string, idempotencyKey: JobRequest, tx?: StoreTransaction): Promise<JobRequest> {
  const { id, digest } = idempotencyKey;
  return { id, digest: await keyStore.digest(tenant, digest, tx), plainDigest: digest };
}
