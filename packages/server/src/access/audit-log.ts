import type { Audit as Log } from "pawl";
import type { Audit } from "../http/audit.js";

/** What the API tells, in the audit log of its store. */
export function auditLog(log: Pick<Log, "record">): Audit {
  return {
    async record({ who = "anonymous", tenant, action, subject, decision, reason, count, address, request }) {
      const named = Object.entries(subject);
      const [first] = named;
      await log.record({
        tenant,
        actor: who,
        action,
        outcome: decision,
        ...(first === undefined ? {} : { subject: `${first[0]}:${first[1]}` }),
        ...(request === "" ? {} : { request }),
        ...(address === "" ? {} : { address }),
        details: { ...Object.fromEntries(named), ...(reason === undefined ? {} : { reason }), ...(count === undefined ? {} : { count }) },
      });
    },
  };
}
