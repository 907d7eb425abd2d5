import type { ArrayText } from "./arrays.js";

/** An array of a record set, or one by itself. */
type Column<Element> = readonly (Element | null | undefined)[] | ArrayText;

/** The parameters of each statement, printed from the `.sql` files by `npm run sql:parameters`. */
export interface SqlParameters {
  readonly "claim/claim-suspect.sql": {
    readonly tasks: Column<string> | null;
    readonly queues: Column<string> | null;
    readonly priorities: Column<number> | null;
    readonly tenants: Column<string> | null;
    readonly now: number | null;
    readonly duration: number | null;
    readonly worker: number | null;
    readonly openLimit: {
      readonly kind: Column<string>;
      readonly name: Column<string>;
    };
  };
  readonly "claim/claim.sql": {
    readonly limitsChecked: boolean | null;
    readonly now: number | null;
    readonly duration: number | null;
    readonly worker: number | null;
    readonly offer: {
      readonly queue: Column<string>;
      readonly priority: Column<number>;
      readonly tenant: Column<string>;
      readonly task: Column<string>;
      readonly admittedSection: Column<number | string>;
      readonly bound: Column<number | string>;
      readonly quota: Column<number>;
    };
  };
  readonly "claim/live-lanes.sql": {
    readonly seenUpTo: number | string | null;
    readonly known: {
      readonly queue: Column<string>;
      readonly priority: Column<number>;
      readonly tenant: Column<string>;
      readonly task: Column<string>;
      readonly bound: Column<number | string>;
      readonly admittedSection: Column<number | string>;
    };
  };
  readonly "duties/poll.sql": {
    readonly now: number | null;
    readonly scheduledFrom: number | null;
    readonly leaseFrom: number | null;
    readonly timerFrom: number | null;
    readonly tickFrom: number | null;
    readonly limitCheckFrom: number | null;
    readonly deltaFrom: number | null;
    readonly drawsTransaction: boolean | null;
  };
  readonly "duties/promote.sql": {
    readonly from: number | null;
    readonly now: number | null;
    readonly limit: number | null;
  };
  readonly "enqueue/enqueue-and-notify.sql": {
    readonly idSuffix: string | null;
    readonly priority: number | null;
    readonly queue: string | null;
    readonly tenant: string | null;
    readonly task: string | null;
    readonly input: string | null;
    readonly options: string | null;
    readonly now: number | null;
    readonly mayHandOff: boolean | null;
    readonly carries: boolean | null;
    readonly channel: string | null;
    readonly payload: string | null;
  };
  readonly "enqueue/enqueue-bulk.sql": {
    readonly now: number | null;
    readonly idTemplates: string | null;
    readonly inputs: string | null;
    readonly count: number | null;
    readonly perRow: number | null;
    readonly priority: number | null;
    readonly queue: string | null;
    readonly tenant: string | null;
    readonly task: string | null;
    readonly options: Column<string> | null;
    readonly carries: boolean | null;
  };
  readonly "enqueue/enqueue-now.sql": {
    readonly now: number | null;
    readonly idTemplates: string | null;
    readonly inputs: string | null;
    readonly carries: boolean | null;
    readonly row: {
      readonly lane: Column<number>;
      readonly first: Column<number>;
      readonly last: Column<number>;
    };
    readonly job: {
      readonly row: Column<number>;
      readonly lane: Column<number>;
      readonly options: Column<string>;
    };
    readonly lane: {
      readonly priority: Column<number>;
      readonly queue: Column<string>;
      readonly tenant: Column<string>;
      readonly task: Column<string>;
      readonly jobs: Column<number>;
    };
  };
  readonly "enqueue/enqueue-one.sql": {
    readonly idSuffix: string | null;
    readonly priority: number | null;
    readonly queue: string | null;
    readonly tenant: string | null;
    readonly task: string | null;
    readonly input: string | null;
    readonly options: string | null;
    readonly now: number | null;
    readonly carries: boolean | null;
  };
  readonly "enqueue/enqueue.sql": {
    readonly now: number | null;
    readonly inputs: string | null;
    readonly lane: {
      readonly queue: Column<string>;
      readonly priority: Column<number>;
      readonly tenant: Column<string>;
      readonly task: Column<string>;
    };
    readonly job: {
      readonly idSuffix: Column<string>;
      readonly lane: Column<number>;
      readonly options: Column<string>;
      readonly delay: Column<number>;
      readonly runAt: Column<number>;
      readonly expire: Column<number>;
      readonly deadline: Column<number>;
    };
  };
  readonly "enqueue/split-rows.sql": {
    readonly ids: Column<string> | null;
  };
  readonly "enqueue/store-jobs.sql": {
    readonly now: number | null;
    readonly lane: {
      readonly queue: Column<string>;
      readonly priority: Column<number>;
      readonly tenant: Column<string>;
      readonly task: Column<string>;
    };
    readonly job: {
      readonly id: Column<string>;
      readonly lane: Column<number>;
      readonly input: Column<string>;
      readonly options: Column<string>;
      readonly due: Column<number>;
      readonly expire: Column<number>;
      readonly deadline: Column<number>;
    };
  };
  readonly "handoff/draw-lease-numbers.sql": {
    readonly count: number | null;
  };
  readonly "handoff/flush.sql": {
    readonly jobs: Column<string> | null;
  };
  readonly "handoff/read-handoff.sql": {
    readonly lease: number | string | null;
    readonly worker: number | null;
  };
  readonly "handoff/register-idle-worker.sql": {
    readonly earlier: number | string | null;
    readonly worker: number | null;
    readonly now: number | null;
    readonly registeredFor: number | null;
    readonly listener: number | null;
    readonly channel: string | null;
    readonly duration: number | null;
    readonly seenUpTo: number | string | null;
    readonly queues: Column<string> | null;
    readonly tasks: Column<string> | null;
    readonly number: number | string | null;
    readonly knownLease: number | string | null;
    readonly server: string | null;
  };
  readonly "handoff/unregister-idle-worker.sql": {
    readonly registration: number | string | null;
    readonly worker: number | null;
  };
  readonly "jobs/add-history.sql": {
    readonly now: number | null;
    readonly entry: {
      readonly job: Column<string>;
      readonly outcome: Column<number>;
      readonly next: Column<number>;
      readonly attempts: Column<number>;
      readonly crashes: Column<number>;
      readonly failure: Column<string>;
      readonly output: Column<string>;
    };
  };
  readonly "jobs/put-waiting.sql": {
    readonly now: number | null;
    readonly lane: {
      readonly queue: Column<string>;
      readonly priority: Column<number>;
      readonly tenant: Column<string>;
      readonly task: Column<string>;
    };
    readonly job: {
      readonly id: Column<string>;
      readonly lane: Column<number>;
      readonly state: Column<number>;
      readonly attempts: Column<number>;
      readonly crashes: Column<number>;
      readonly runAt: Column<number>;
      readonly suspect: Column<boolean>;
      readonly kind: Column<string>;
      readonly name: Column<string>;
    };
  };
  readonly "jobs/take-waiting.sql": {
    readonly ids: Column<string> | null;
    readonly state: string | null;
  };
  readonly "limits/admit.sql": {
    readonly admitted: {
      readonly id: Column<string>;
      readonly waited: Column<boolean>;
    };
    readonly slot: {
      readonly kind: Column<string>;
      readonly key: Column<string>;
      readonly job: Column<string>;
    };
    readonly waiting: {
      readonly id: Column<string>;
      readonly limitKey: Column<string>;
      readonly rank: Column<number>;
      readonly reason: Column<string>;
    };
    readonly changed: {
      readonly key: Column<string>;
      readonly fullAt: Column<number>;
      readonly closed: Column<boolean>;
    };
    readonly limitCheck: {
      readonly at: Column<number>;
      readonly key: Column<string>;
    };
  };
  readonly "limits/heads-of-limit-queues.sql": {
    readonly limit: {
      readonly key: Column<string>;
      readonly room: Column<number>;
    };
  };
  readonly "settle/append-attempts.sql": {
    readonly worker: number | null;
    readonly attempt: {
      readonly lease: Column<number | string>;
      readonly job: Column<string>;
      readonly index: Column<number>;
      readonly outcome: Column<number>;
      readonly next: Column<number>;
      readonly attempts: Column<number>;
      readonly crashes: Column<number>;
      readonly started: Column<number>;
      readonly finished: Column<number>;
      readonly output: Column<string>;
      readonly failure: Column<string>;
    };
  };
  readonly "settle/classify-settled.sql": {
    readonly worker: number | null;
    readonly settlement: {
      readonly lease: Column<number | string>;
      readonly job: Column<string>;
    };
  };
  readonly "settle/lock-expired.sql": {
    readonly now: number | null;
    readonly from: number | null;
    readonly limit: number | null;
  };
  readonly "settle/renew.sql": {
    readonly now: number | null;
    readonly duration: number | null;
    readonly leases: Column<number | string> | null;
    readonly worker: number | null;
  };
  readonly "settle/settle.sql": {
    readonly worker: number | null;
    readonly since: number | null;
    readonly started: Column<number | string> | null;
    readonly finished: Column<number | string> | null;
    readonly outcomes: Column<number> | null;
    readonly failures: Column<string> | null;
    readonly outputs: Column<string> | null;
    readonly now: number | null;
    readonly lease: {
      readonly id: Column<number | string>;
      readonly runFrom: Column<number>;
      readonly runTo: Column<number>;
    };
    readonly run: {
      readonly first: Column<number>;
      readonly last: Column<number>;
      readonly home: Column<number | string>;
      readonly lastHome: Column<number | string>;
      readonly at: Column<number>;
      readonly outcomesFrom: Column<number>;
      readonly outcomesTo: Column<number>;
      readonly outputs: Column<number>;
      readonly lane: Column<number>;
      readonly ready: Column<number>;
      readonly scheduled: Column<number>;
      readonly dead: Column<number>;
      readonly cancelled: Column<number>;
    };
    readonly lane: {
      readonly queue: Column<string>;
      readonly priority: Column<number>;
      readonly tenant: Column<string>;
      readonly task: Column<string>;
    };
    readonly move: {
      readonly run: Column<number>;
      readonly nth: Column<number>;
      readonly lane: Column<number>;
      readonly next: Column<number>;
      readonly attempts: Column<number>;
      readonly crashes: Column<number>;
      readonly delay: Column<number>;
      readonly suspect: Column<boolean>;
      readonly kind: Column<string>;
      readonly name: Column<string>;
    };
  };
}
