import type { Explanation, JobView } from "pawl";
import type { Reason } from "pawl/service";

/** What somebody who looks at a job may want to do: what lifts that which it waits for, or tells more of it. */
export function nextSteps(job: JobView, explanation: Explanation | undefined): readonly string[] {
  const { id, state } = job;
  switch (state) {
    case "dead":
      return [`pawl jobs redrive ${id}   runs it again, with fresh counts`, "pawl dead groups   shows what else died of this"];
    case "scheduled":
      return [`pawl jobs promote ${id}   runs it now`];
    case "running":
      return [`pawl jobs watch ${id}   follows it`];
    case "parked":
    case "ready":
    case "blocked": {
      if (explanation === undefined) return [`pawl jobs explain ${id}   tells why it is not running`];
      return explanation.reasons.flatMap((reason) => remedies(reason, job));
    }
    default:
      return [];
  }
}

function remedies(reason: Reason<Date>, { task, tenant }: JobView): readonly string[] {
  switch (reason.kind) {
    case "paused":
      return [`pawl ${reason.what}s resume ${reason.name}   lets it go on`];
    case "blocked":
      return reason.on.slice(0, 1).map(({ job }) => `pawl jobs show ${job}   shows what it waits for`);
    case "limit_key":
      if (reason.holders === undefined) return [`pawl limits --tenant ${tenant}   shows how its key and others stand`];
      return reason.holders.slice(0, 1).map(({ job }) => `pawl jobs show ${job}   shows what holds its slot`);
    case "breaker_open":
      return [`pawl breakers reset ${task} --tenant ${reason.tenant}   lets its jobs be tried again now`];
    case "policy_limit":
      return [`pawl ${reason.what}s update ${reason.name} --${reason.limit} …   changes the limit`];
    case "unserved":
      return ["pawl workers   shows who is live and what they serve"];
    default:
      return [];
  }
}
