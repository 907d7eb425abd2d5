import { OWN_TENANT } from "../../core/access/tenant.js";
import type { ReplyStore } from "../port/access/replies.js";
import type { BatchRequest, BatchStore, EnqueuedBatch, KnownBatch } from "../port/enqueue/batches.js";
import type { StoreTransaction } from "../port/index.js";
import { encryptInputs } from "./inputs.js";
import type { KeyStore } from "./key-store.js";

/**
 * What a request holds is told apart from what the same one held before by a digest. A plain one would let anybody who reads
 * the table find out whether a guess at an input is right, so it goes in under a key of the tenant.
 */
export function encryptedBatches(batches: BatchStore, keyStore: KeyStore): BatchStore {
  const keyed = async (request: BatchRequest, tx?: StoreTransaction): Promise<BatchRequest> => ({
    ...request,
    digest: await keyStore.digest(ownerOf(request.tenant), request.digest, tx),
  });
  /** What was stored before encryption was asked for has a plain one. */
  const orPlain = async <A extends EnqueuedBatch | undefined>(answer: A, request: BatchRequest): Promise<A | KnownBatch> =>
    answer?.kind === "different" ? ((await batches.get(request)) ?? answer) : answer;
  return {
    enqueue: async (request, jobs, tx) =>
      orPlain(await batches.enqueue(await keyed(request, tx), await encryptInputs(keyStore, jobs, tx), tx), request),
    get: async (request) => orPlain(await batches.get(await keyed(request)), request),
  };
}

/** The same for requests that are answered once. */
export function encryptedReplies(replies: ReplyStore, keyStore: KeyStore): ReplyStore {
  return {
    ...replies,
    async begin(ref, how) {
      const begun = await replies.begin(ref, { ...how, hash: await keyStore.digest(ownerOf(ref.tenant), how.hash) });
      return begun.kind === "different" ? replies.begin(ref, how) : begun;
    },
  };
}

/** What is of no tenant is under a key of Pawl's own, which is never purged. */
function ownerOf(tenant: string | undefined): string {
  return tenant === undefined || tenant === "" ? OWN_TENANT : tenant;
}
