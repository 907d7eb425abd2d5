import { OWN_TENANT } from "../../core/tenant.js";
import type { ForeignTransaction } from "../port.js";
import type { BatchRequest, BatchStore, EnqueuedBatch, KnownBatch } from "../port-batches.js";
import type { ReplyStore } from "../port-replies.js";
import { sealInputs } from "./inputs.js";
import type { Vault } from "./vault.js";

/**
 * What a request holds is told apart from what the same one held before by a digest. A plain one would let anybody who reads
 * the table find out whether a guess at an input is right, so it goes in under a key of the tenant.
 */
export function sealedBatches(batches: BatchStore, vault: Vault): BatchStore {
  const keyed = async (request: BatchRequest, tx?: ForeignTransaction): Promise<BatchRequest> => ({
    ...request,
    digest: await vault.digest(ownerOf(request.tenant), request.digest, tx),
  });
  /** What was stored before sealing was asked for has a plain one. */
  const orPlain = async <A extends EnqueuedBatch | undefined>(answer: A, request: BatchRequest): Promise<A | KnownBatch> =>
    answer?.kind === "different" ? ((await batches.get(request)) ?? answer) : answer;
  return {
    enqueue: async (request, jobs, tx) => orPlain(await batches.enqueue(await keyed(request, tx), await sealInputs(vault, jobs, tx), tx), request),
    get: async (request) => orPlain(await batches.get(await keyed(request)), request),
  };
}

/** The same for requests that are answered once. */
export function sealedReplies(replies: ReplyStore, vault: Vault): ReplyStore {
  return {
    ...replies,
    async begin(ref, how) {
      const begun = await replies.begin(ref, { ...how, hash: await vault.digest(ownerOf(ref.tenant), how.hash) });
      return begun.kind === "different" ? replies.begin(ref, how) : begun;
    },
  };
}

/** What is of no tenant is under a key of Pawl's own, which is never purged. */
function ownerOf(tenant: string | undefined): string {
  return tenant === undefined || tenant === "" ? OWN_TENANT : tenant;
}
