import { userInfo } from "node:os";
import type { NewAudit, Pawl } from "pawl";

/** Tells the audit log what somebody at this machine is about to do with the store itself. A server tells its own. */
export async function ofCli(pawl: Pawl, entry: Omit<NewAudit, "actor" | "outcome">): Promise<void> {
  await pawl.audit.record({ ...entry, actor: `cli:${userInfo().username}`, outcome: "allowed" });
}
