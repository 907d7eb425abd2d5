import { randomUUID } from "node:crypto";
import { type Job, open, type Pawl, type Transaction, task } from "pawl";
import { apiKeyText, type Host, type PawlService, serviceOf } from "pawl/service";
import { afterEach, describe, expect, test } from "vitest";
import { nativePostgres } from "../../packages/pawl/src/store/postgres/embedded/index.js";
import { createApp } from "../../packages/server/src/http/app.js";
import { barrier } from "../support/fixtures/memory-fixture.js";
import { freshDatabase } from "../support/servers/servers.js";
import { temporaryFolder } from "../support/temporary-folder.js";

/** One call of everything that a type offers, however deep: a new method does not compile before it is here. */
type Calls<T, Of> = {
  readonly [K in keyof T as T[K] extends string | undefined ? never : K]-?: T[K] extends (...given: never[]) => unknown
    ? (of: Of) => unknown
    : Calls<T[K], Of>;
};

const native = nativePostgres();
const greet = task("greet", () => "hello");
const SOMEBODY = { tenant: "acme" } as const;
const BREAKER = { tenant: "acme", task: "greet" } as const;
const TARGET = { tenant: "acme", task: "greet" } as const;
/** What asks nothing of the store, and may be called for ever. */
const FREE = ["apiKeys.recall", "apiKeys.remembered", "workers.local", "unended", "close", String(Symbol.asyncDispose)];

interface CallBefore {
  readonly pawl: Pawl;
  readonly job: Job;
}

const OF_A_JOB: Calls<Job, CallBefore> = {
  get: ({ job }) => job.get(),
  result: ({ job }) => job.result(),
  wait: ({ job }) => job.wait(),
  rerun: ({ job }) => job.rerun(),
  history: ({ job }) => job.history(),
  logs: ({ job }) => job.logs(),
  explain: ({ job }) => job.explain(),
  cancel: ({ job }) => job.cancel(),
  pause: ({ job }) => job.pause(),
  resume: ({ job }) => job.resume(),
  promote: ({ job }) => job.promote(),
  redrive: ({ job }) => job.redrive(),
  delete: ({ job }) => job.delete(),
};

const named = (of: "queues" | "tasks" | "tenants") => ({
  pause: ({ pawl }: CallBefore) => pawl[of].pause("x"),
  resume: ({ pawl }: CallBefore) => pawl[of].resume("x"),
  update: ({ pawl }: CallBefore) => pawl[of].update("x", { weight: 2 }),
  get: ({ pawl }: CallBefore) => pawl[of].get("x"),
  list: ({ pawl }: CallBefore) => pawl[of].list(),
});

const CALLS: Calls<Pawl, CallBefore> = {
  enqueue: ({ pawl }) => pawl.enqueue(greet),
  call: ({ pawl }) => pawl.call(greet),
  enqueueMany: ({ pawl }) => pawl.enqueueMany("greet", [1]),
  enqueueAll: ({ pawl }) => pawl.enqueueAll([{ task: "greet" }], { idempotencyKey: "r" }),
  enqueueStream: ({ pawl }) => pawl.enqueueStream("greet", [1]),
  jobs: {
    get: ({ pawl, job }) => pawl.jobs.get(job),
    list: ({ pawl }) => pawl.jobs.list(),
    count: ({ pawl }) => pawl.jobs.count(),
    bulk: ({ pawl }) => pawl.jobs.bulk("cancel", { task: "greet" }),
    restore: ({ pawl }) => pawl.jobs.restore([]),
    history: ({ pawl, job }) => pawl.jobs.history(job),
    logs: ({ pawl, job }) => pawl.jobs.logs(job),
    explain: ({ pawl, job }) => pawl.jobs.explain(job),
    cancel: ({ pawl, job }) => pawl.jobs.cancel(job),
    pause: ({ pawl, job }) => pawl.jobs.pause(job),
    resume: ({ pawl, job }) => pawl.jobs.resume(job),
    promote: ({ pawl, job }) => pawl.jobs.promote(job),
    redrive: ({ pawl, job }) => pawl.jobs.redrive(job),
    rerun: ({ pawl, job }) => pawl.jobs.rerun(job),
    delete: ({ pawl, job }) => pawl.jobs.delete(job),
    wait: ({ pawl, job }) => pawl.jobs.wait(job),
    result: ({ pawl, job }) => pawl.jobs.result(job),
  },
  dead: {
    list: ({ pawl }) => pawl.dead.list(),
    count: ({ pawl }) => pawl.dead.count(),
    groups: ({ pawl }) => pawl.dead.groups(),
    redrive: ({ pawl }) => pawl.dead.redrive(),
    delete: ({ pawl }) => pawl.dead.delete(),
  },
  schedules: {
    put: ({ pawl }) => pawl.schedules.put("s", "greet", { every: "1h" }),
    update: ({ pawl }) => pawl.schedules.update("s", { every: "2h" }),
    get: ({ pawl }) => pawl.schedules.get("s"),
    list: ({ pawl }) => pawl.schedules.list(),
    pause: ({ pawl }) => pawl.schedules.pause("s"),
    resume: ({ pawl }) => pawl.schedules.resume("s"),
    delete: ({ pawl }) => pawl.schedules.delete("s"),
    trigger: ({ pawl }) => pawl.schedules.trigger("s"),
    backfill: ({ pawl }) => pawl.schedules.backfill("s", { from: new Date(0), to: new Date(1_000) }),
    preview: ({ pawl }) => pawl.schedules.preview("s"),
    ticks: ({ pawl }) => pawl.schedules.ticks("s"),
  },
  targets: {
    put: ({ pawl }) => pawl.targets.put("greet", { ...SOMEBODY, url: "https://example.com/hook" }),
    get: ({ pawl }) => pawl.targets.get(TARGET),
    list: ({ pawl }) => pawl.targets.list(),
    rotate: ({ pawl }) => pawl.targets.rotate(TARGET),
    delete: ({ pawl }) => pawl.targets.delete(TARGET),
  },
  counts: ({ pawl }) => pawl.counts(),
  forTenant: ({ pawl }) => pawl.forTenant(SOMEBODY.tenant).counts(),
  queues: named("queues"),
  tasks: { ...named("tasks"), put: ({ pawl }) => pawl.tasks.put("x", {}) },
  tenants: {
    ...named("tenants"),
    export: async ({ pawl }) => {
      for await (const _ of pawl.tenants.export("acme"));
    },
    purge: ({ pawl }) => pawl.tenants.purge("acme"),
  },
  breakers: {
    list: ({ pawl }) => pawl.breakers.list(),
    get: ({ pawl }) => pawl.breakers.get(BREAKER),
    open: ({ pawl }) => pawl.breakers.open(BREAKER),
    close: ({ pawl }) => pawl.breakers.close(BREAKER),
    reset: ({ pawl }) => pawl.breakers.reset(BREAKER),
  },
  limits: { list: ({ pawl }) => pawl.limits.list(), get: ({ pawl }) => pawl.limits.get({ tenant: "acme", name: "l", key: "k" }) },
  lanes: { list: ({ pawl }) => pawl.lanes.list() },
  doctor: ({ pawl }) => pawl.doctor(),
  workers: { list: ({ pawl }) => pawl.workers.list(), get: ({ pawl }) => pawl.workers.get("ana"), local: ({ pawl }) => pawl.workers.local() },
  series: ({ pawl }) => pawl.series(),
  info: ({ pawl }) => pawl.info(),
  wake: ({ pawl }) => pawl.wake(),
  on: ({ pawl }) => pawl.on("worker.started", () => {}),
  work: ({ pawl }) => pawl.work(),
  closeOnSignal: ({ pawl }) => pawl.closeOnSignal(),
  close: ({ pawl }) => pawl.close(),
  [Symbol.asyncDispose]: ({ pawl }) => pawl[Symbol.asyncDispose](),
};

/** Calls that would ask the store nothing. */
const OF_NOTHING: Readonly<Record<string, Call>> = {
  "enqueueMany of no inputs": ({ pawl }) => pawl.enqueueMany("greet", []),
  "enqueueStream of no inputs": ({ pawl }) => pawl.enqueueStream("greet", []),
  "enqueueMany of no inputs, for a tenant": ({ pawl }) => pawl.forTenant(SOMEBODY.tenant).enqueueMany("greet", []),
};

const OF_A_SERVICE: Calls<PawlService, CallBefore> = {
  apiKeys: {
    create: ({ pawl }) => serviceOf(pawl).apiKeys.create({ name: "k", grants: [{ role: "viewer" }] }),
    get: ({ pawl }) => serviceOf(pawl).apiKeys.get("k".repeat(16)),
    list: ({ pawl }) => serviceOf(pawl).apiKeys.list(),
    rotate: ({ pawl }) => serviceOf(pawl).apiKeys.rotate("k".repeat(16)),
    revoke: ({ pawl }) => serviceOf(pawl).apiKeys.revoke("k".repeat(16)),
    forTenant: ({ pawl }) => serviceOf(pawl).apiKeys.forTenant(SOMEBODY.tenant).list(),
    verify: ({ pawl }) => serviceOf(pawl).apiKeys.verify(apiKeyText({ env: "live", id: "A".repeat(16), secret: "B".repeat(43) })),
    recall: ({ pawl }) => serviceOf(pawl).apiKeys.recall("nonsense"),
    remembered: ({ pawl }) => serviceOf(pawl).apiKeys.remembered("nonsense"),
    status: ({ pawl }) => serviceOf(pawl).apiKeys.status(),
  },
  audit: {
    record: ({ pawl }) => serviceOf(pawl).audit.record({ tenant: undefined, actor: "a", action: "b", outcome: "allowed" }),
    list: ({ pawl }) => serviceOf(pawl).audit.list(),
    heads: ({ pawl }) => serviceOf(pawl).audit.heads(),
    verify: ({ pawl }) => serviceOf(pawl).audit.verify(),
  },
  idempotency: { begin: ({ pawl }) => serviceOf(pawl).idempotency.begin({ tenant: undefined, credential: "c", key: "k", hash: "h" }) },
  events: {
    follow: ({ pawl }) => serviceOf(pawl).events.follow(() => {}),
    since: ({ pawl }) => serviceOf(pawl).events.since({ epoch: "e", batch: 0 }),
  },
  encryption: {
    status: ({ pawl }) => serviceOf(pawl).encryption.status(),
    rewrap: ({ pawl }) => serviceOf(pawl).encryption.rewrap(),
    rotate: ({ pawl }) => serviceOf(pawl).encryption.rotate("acme"),
  },
  purges: {
    request: ({ pawl }) => serviceOf(pawl).purges.request("acme"),
    carryOut: ({ pawl }) => serviceOf(pawl).purges.carryOut(randomUUID()),
    list: ({ pawl }) => serviceOf(pawl).purges.list(),
  },
  forCaller: async ({ pawl }) => (await serviceOf(pawl).forCaller("c")).counts(),
  push: ({ pawl }) => serviceOf(pawl).push(async () => undefined),
  host: ({ pawl }) => serviceOf(pawl).host({ name: "w", instance: randomUUID() }),
  lanesOf: ({ pawl, job }) => serviceOf(pawl).lanesOf([job.id]),
  backlog: ({ pawl }) => serviceOf(pawl).backlog(),
  unended: ({ pawl }) => serviceOf(pawl).unended(),
};

type Call = (of: CallBefore) => unknown;

function flat(calls: object, path = ""): readonly (readonly [name: string, call: Call])[] {
  return Reflect.ownKeys(calls).flatMap((key) => {
    const value = Reflect.get(calls, key) as Call | object;
    const name = `${path}${String(key)}`;
    return typeof value === "function" ? [[name, value as Call] as const] : flat(value, `${name}.`);
  });
}

/** ms; whatever is told at once is told long before */
const LONG = 20_000;

/** How a call ended: by its code, or that it answered. */
async function endOf(call: () => unknown): Promise<string> {
  let timer: NodeJS.Timeout | undefined;
  const never = new Promise<string>((resolve) => {
    timer = setTimeout(resolve, LONG, "nothing at all");
  });
  try {
    return await Promise.race([Promise.resolve(call()).then(() => "an answer"), never]);
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  } finally {
    clearTimeout(timer);
  }
}

async function endsOf(was: CallBefore): Promise<Readonly<Record<string, string>>> {
  const all = [...flat(CALLS), ...flat(OF_A_SERVICE), ...flat(OF_A_JOB, "job.")];
  return Object.fromEntries(await Promise.all(all.map(async ([name, call]) => [name, await endOf(() => call(was))] as const)));
}

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const OPTIONS = { tasks: [greet], apiKeys: { pepper: "p".repeat(32) }, encryption: { masterKeys: ["ab".repeat(32)] } };

async function openPostgres(): Promise<Pawl> {
  const database = await freshDatabase();
  closing.push(() => database.drop());
  return open(database.url, OPTIONS);
}

async function openService(): Promise<Pawl> {
  const store = await open("memory:", {});
  const app = createApp({ pawl: store });
  closing.push(async () => {
    await app.close();
    await store.close();
  });
  return open(await app.listen({ host: "127.0.0.1", port: 0 }), { tasks: [greet] });
}

describe.each([
  { where: "in memory", opening: () => open("memory:", OPTIONS) },
  { where: "on Postgres", opening: openPostgres },
  { where: "through a service", opening: openService },
])("what is closed, $where,", ({ where, opening }) => {
  test("says `closed` to every call there is", async () => {
    const pawl = await opening();
    const job = await pawl.enqueue(greet);
    await pawl.close();
    const free = where === "through a service" ? ["remote_unsupported", "closed"] : ["closed"];
    const wrong = Object.entries(await endsOf({ pawl, job })).filter(([name, end]) => !free.includes(end) && !FREE.includes(name));
    expect(Object.fromEntries(wrong)).toEqual({});
  });

  test("says `closed` to calls that would ask its store nothing", async () => {
    const pawl = await opening();
    const job = await pawl.enqueue(greet);
    const ends = async () =>
      Object.fromEntries(await Promise.all(Object.entries(OF_NOTHING).map(async ([name, call]) => [name, await endOf(() => call({ pawl, job }))])));
    expect([...new Set(Object.values(await ends()))]).toEqual(["an answer"]);
    await pawl.close();
    expect(await ends()).toEqual(Object.fromEntries(Object.keys(OF_NOTHING).map((name) => [name, "closed"])));
  });

  test("says `closed` to what was made of it before, and to what was under way", async () => {
    const pawl = await opening();
    const mine = pawl.forTenant(SOMEBODY.tenant);
    await mine.enqueueMany("greet", [1, 2, 3]);
    const later = barrier();
    async function* inputs() {
      yield 1;
      await later.opened;
      yield 2;
    }
    const streamed = endOf(() => pawl.enqueueStream("greet", inputs()));
    const exported = pawl.tenants.export("acme")[Symbol.asyncIterator]();
    await exported.next();
    await pawl.close();
    later.open();
    const restOfExport = async () => {
      for (let step = await exported.next(); step.done !== true; step = await exported.next());
    };
    const ends = [endOf(() => mine.enqueue(greet)), endOf(() => mine.jobs.list()), endOf(() => mine.forTenant(SOMEBODY.tenant).counts()), streamed];
    expect(await Promise.all(ends)).toEqual(ends.map(() => "closed"));
    // Of a service's, the end of a small one has arrived by then.
    expect(where === "through a service" ? ["closed", "an answer"] : ["closed"]).toContain(await endOf(restOfExport));
  });

  test("ends with `closed` what waits when it is closed, and what begins to wait while it closes", async () => {
    const pawl = await opening();
    const job = await pawl.enqueue(greet);
    const waits = [endOf(() => job.result()), endOf(() => pawl.jobs.wait(job)), endOf(() => job.result("1h"))];
    const closed = pawl.close();
    waits.push(endOf(() => job.result()));
    await closed;
    waits.push(endOf(() => job.result()));
    expect(await Promise.all(waits)).toEqual(waits.map(() => "closed"));
  });

  test("neither loses nor doubts what was asked for before: it is answered, or `closed`", async () => {
    const pawl = await opening();
    const asked = Array.from({ length: 200 }, (_, n) => endOf(() => (n % 2 === 0 ? pawl.enqueue("greet", n) : pawl.jobs.list())));
    await pawl.close();
    const ends = new Set(await Promise.all(asked));
    expect([...ends].filter((end) => end !== "an answer" && end !== "closed")).toEqual([]);
  });
});

describe.each([
  { where: "on PGlite", engine: "pglite" },
  { where: "on the embedded Postgres", engine: "native" },
] as const)("what is closed, in a folder $where,", ({ engine }) => {
  test.skipIf(engine === "native" && !native.ok)("says `closed` to every call there is", async () => {
    using folder = temporaryFolder();
    const pawl = await open(folder.path, { ...OPTIONS, engine });
    const job = await pawl.enqueue(greet);
    await pawl.close();
    const wrong = Object.entries(await endsOf({ pawl, job })).filter(([name, end]) => end !== "closed" && !FREE.includes(name));
    expect(Object.fromEntries(wrong)).toEqual({});
  });
});

describe("what was made of an open one", () => {
  test("says `closed` too: a host, a tail of events, a worker", async () => {
    const pawl = await open("memory:", OPTIONS);
    const host: Host = serviceOf(pawl).host({ name: "w", instance: randomUUID() });
    const tail = await serviceOf(pawl).events.follow(() => {});
    const worker = await pawl.work();
    const turn = await serviceOf(pawl).idempotency.begin({ tenant: undefined, credential: "c", key: "k", hash: "h" });
    await pawl.close();
    await tail.stop();
    await worker.stop();
    const ends = [
      () => host.claim({ tasks: [{ name: "greet" }], limit: 1 }),
      () => worker.start(),
      () => turn.kind === "begun" && turn.finish({ status: 200, body: "", headers: {} }),
    ];
    expect(await Promise.all(ends.map(endOf))).toEqual(["closed", "closed", "closed"]);
  });
});

describe("the handle of a transaction", () => {
  test("says `closed` once the transaction has ended, and writes nothing into the next one of its connection", async () => {
    const database = await freshDatabase();
    closing.push(() => database.drop());
    let kept: Transaction | undefined;
    const keeps = task("keeps", (_: unknown, ctx) =>
      ctx.transaction(async (tx) => {
        kept = tx;
        await tx.query("create table seen (n int)", []);
      }),
    );
    const pawl = await open(database.url, { tasks: [keeps], postgres: { connections: 4 } });
    closing.push(() => pawl.close());
    await pawl.work();
    await (await pawl.enqueue(keeps)).result();
    expect(await endOf(() => kept?.query("insert into seen values (1)", []))).toBe("closed");
    await pawl.close();
    expect(await endOf(() => kept?.query("insert into seen values (1)", []))).toBe("closed");
  });
});
