import type { NewJob } from "../../core/job.js";
import type { ForeignTransaction } from "../port.js";
import { inputPlace, Sealer } from "./sealer.js";
import type { Vault } from "./vault.js";

export async function sealInputs(vault: Vault, jobs: readonly NewJob[], tx: ForeignTransaction | undefined): Promise<readonly NewJob[]> {
  const sealer = await Sealer.of(
    vault,
    jobs.map(({ lane }) => lane.tenant),
    tx,
  );
  return jobs.map((job) => ({ ...job, input: sealer.seal(job.input, job.lane.tenant, inputPlace(job.lane.task, job.tail)) }));
}
