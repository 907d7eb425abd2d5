import type { JobRequest, NewJob } from "../../core/job.js";
import type { ForeignTransaction } from "../port.js";
import { inputPlace, Sealer } from "./sealer.js";
import type { Vault } from "./vault.js";

/** The jobs with sealed inputs. A request's digest would tell whether a guess at the input is right, so it goes in under a key, too. */
export async function sealInputs(vault: Vault, jobs: readonly NewJob[], tx: ForeignTransaction | undefined): Promise<readonly NewJob[]> {
  const sealer = await Sealer.of(
    vault,
    jobs.map(({ lane }) => lane.tenant),
    tx,
  );
  const sealed: NewJob[] = [];
  for (const job of jobs) {
    const { lane, tail, request } = job;
    const input = sealer.seal(job.input, lane.tenant, inputPlace(lane.task, tail));
    sealed.push(request === undefined ? { ...job, input } : { ...job, input, request: await sealRequest(vault, lane.tenant, request, tx) });
  }
  return sealed;
}

export async function sealRequest(vault: Vault, tenant: string, request: JobRequest, tx?: ForeignTransaction): Promise<JobRequest> {
  const { id, digest } = request;
  return { id, digest: await vault.digest(tenant, digest, tx), plainDigest: digest };
}
