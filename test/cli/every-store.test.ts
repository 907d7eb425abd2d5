import { open, type Pawl, task } from "pawl";
import { describe, expect, test } from "vitest";
import { serve } from "../service/service.js";
import { runPawlWith } from "../support/run-cli.js";
import { describeOn, migratedDatabase } from "../support/servers/servers.js";
import { temporaryFolder } from "../support/temporary-folder.js";

const MASTER = Buffer.alloc(32, 7).toString("base64");
const PEPPER = {
  PAWL_API_KEYS_PEPPER: "env:PEPPER",
  PEPPER: "a pepper of sixteen bytes or more",
  PAWL_ENCRYPTION_MASTER_KEYS: "env:MASTER",
  MASTER,
};
const UNKNOWN = "0199ffff-ffff-7fff-bfff-ffffffffffff";

const greet = task("greet", () => "hello");
const fails = task("fails", { retry: 0 }, () => {
  throw new RangeError("no");
});

const overdue = task("overdue", { retry: ["1h"], finishWithin: "1m" }, () => {
  throw new TypeError("not now");
});

/** Jobs in every kind of state, of two tenants. */
async function filled(pawl: Pawl) {
  const done = await pawl.enqueue(greet, undefined, { tenant: "acme", tags: ["vip"] });
  const dead = await pawl.enqueue(fails, undefined, { queue: "post" });
  const lapsed = await pawl.enqueue(overdue);
  const worker = await pawl.work();
  await Promise.all([done, dead, lapsed].map(({ id }) => pawl.jobs.wait(id)));
  await worker.stop();
  const late = await pawl.enqueue("greet", undefined, { delay: "2h", queue: "post" });
  await pawl.schedules.put("nightly", "greet", { every: "1d" });
  return { done: done.id, dead: dead.id, lapsed: lapsed.id, late: late.id };
}

type Ids = Readonly<Record<keyof Awaited<ReturnType<typeof filled>>, string>>;

/** Filters of `jobs list`, and which of the jobs they find. */
const FILTERS: readonly (readonly [argv: readonly string[], find: readonly (keyof Ids)[]])[] = [
  [[], ["late", "lapsed", "dead", "done"]],
  [
    ["--state", "dead"],
    ["lapsed", "dead"],
  ],
  [["--state", "scheduled"], ["late"]],
  [
    ["--queue", "post"],
    ["late", "dead"],
  ],
  [["--task", "fails"], ["dead"]],
  [["--tenant", "acme"], ["done"]],
  [["--tag", "vip"], ["done"]],
  [["--failure", "RangeError"], ["dead"]],
  [["--failure", "deadline"], ["lapsed"]],
  [["--failure", "TypeError"], []],
  [
    ["--until", "1ms", "--since", "1h"],
    ["lapsed", "dead", "done"],
  ],
  [["--queue", "post", "--state", "dead", "--task", "fails"], ["dead"]],
  [["--task", "unheard.of"], []],
];

/** Every command that is about a store, in an order in which each has something to do; and what its JSON holds. */
function commands({ done, dead, late }: Ids): readonly (readonly [argv: readonly string[], holds: readonly string[], exit?: number])[] {
  return [
    [
      ["enqueue", "greet", "{}"],
      ["enqueued", "id", "task"],
    ],
    [
      ["jobs", "show", late],
      ["explanation", "history", "job"],
    ],
    [
      ["jobs", "explain", late],
      ["job", "reasons", "state", "text"],
    ],
    [["jobs", "logs", done], []],
    [["jobs", "watch", done], ["event"]],
    ...["pause", "resume", "promote"].map((verb) => [["jobs", verb, late], ["results"]] as const),
    [["jobs", "cancel", late, "--yes"], ["results"]],
    [
      ["jobs", "rerun", done],
      ["id", "rerunOf", "task"],
    ],
    [["dead", "groups"], ["items"]],
    [["dead", "list"], ["items"]],
    [["jobs", "redrive", dead], ["results"]],
    [["jobs", "count", "--state", "dead"], ["count"]],
    [
      ["jobs", "bulk", "promote", "--task", "nothing", "--yes"],
      ["changed", "failed", "skipped"],
    ],
    [
      ["dead", "redrive", "--yes"],
      ["redriven", "skipped"],
    ],
    [
      ["dead", "delete", "--yes"],
      ["changed", "failed", "skipped"],
    ],
    [["jobs", "delete", done, "--yes"], ["results"]],
    ...(["queue", "task", "tenant"] as const).flatMap((kind) => [
      [[`${kind}s`, "pause", "some"], ["paused"]] as const,
      [[`${kind}s`, "resume", "some"], ["resumed"]] as const,
      [[`${kind}s`, "update", "some", "--concurrency", "3"], [kind, "policy"].sort()] as const,
      [[`${kind}s`, "show", "some"], [...(kind === "tenant" ? [] : ["counts"]), "paused", "policy", kind].sort()] as const,
      [[`${kind}s`, "list"], ["items"]] as const,
    ]),
    [
      ["schedules", "put", "nightly", "--task", "greet", "--cron", "0 3 * * *", "--missed", "skip"],
      ["result", "schedule"],
    ],
    [["schedules", "list"], ["items"]],
    [
      ["schedules", "show", "nightly"],
      ["schedule", "ticks"],
    ],
    [["schedules", "preview", "nightly"], ["items"]],
    [
      ["schedules", "pause", "nightly"],
      ["paused", "schedule"],
    ],
    [
      ["schedules", "resume", "nightly"],
      ["resumed", "schedule"],
    ],
    [
      ["schedules", "trigger", "nightly"],
      ["id", "task"],
    ],
    [
      ["schedules", "backfill", "nightly", "--from", "3d", "--to", "2d", "--dry-run"],
      ["fired", "jobs", "missing", "ticks"],
    ],
    [
      ["schedules", "delete", "nightly", "--yes"],
      ["deleted", "schedule"],
    ],
    [["breakers", "open", "mail"], ["breaker"]],
    [["breakers", "list"], ["items"]],
    [["breakers", "close", "mail"], ["breaker"]],
    [["breakers", "reset", "mail"], ["breaker"]],
    [["limits", "list"], ["items"]],
    [
      ["targets", "put", "mail", "https://billing.example.com/hook", "--timeout", "5s"],
      ["secret", "target"],
    ],
    [["targets", "list"], ["items"]],
    [
      ["targets", "rotate", "mail", "--keep-old-for", "1h"],
      ["secret", "target"],
    ],
    [
      ["targets", "delete", "mail", "--yes"],
      ["deleted", "target"],
    ],
    [
      ["api-keys", "create", "ci", "--role", "viewer"],
      ["key", "secret"],
    ],
    [["api-keys", "list"], ["items"]],
    [["audit", "list"], ["items"]],
    [
      ["audit", "verify"],
      ["chains", "entries", "faults", "ok"],
    ],
    [["workers", "list"], ["items"]],
    [["lanes", "--unserved"], ["items"]],
    [
      ["top", "--once"],
      ["lanes", "queues", "workers"],
    ],
    [["doctor"], ["findings", "healthy"], 5],
    [
      ["migrate", "--check"],
      ["behind", "migrated", "schema"],
    ],
  ];
}

/** What every store must be asked alike. */
async function checkStore(store: string): Promise<void> {
  const at = (...argv: readonly string[]) => runPawlWith({ ...PEPPER, PAWL_STORE: store }, ...argv);
  const json = async (...argv: readonly string[]) => {
    const { exit, out, err } = await at(...argv, "--json");
    return { exit, err, value: (out === "" ? {} : JSON.parse(argv[1] === "watch" ? (out.split("\n")[0] as string) : out)) as never };
  };
  const pawl = await open(store, { tasks: [greet, fails, overdue] });
  const ids = await filled(pawl).finally(() => pawl.close());

  for (const [argv, find] of FILTERS) {
    const { items: jobs } = (await json("jobs", "list", ...argv)).value as { items: { id: string }[] };
    expect(jobs.map(({ id }) => id).sort(), argv.join(" ")).toEqual(find.map((name) => ids[name]).sort());
  }
  const first = (await json("jobs", "list", "--limit", "3")).value as { items: { id: string }[]; next: string };
  const second = (await json("jobs", "list", "--limit", "3", "--cursor", first.next)).value as { items: { id: string }[]; next?: string };
  expect([...first.items, ...second.items].map(({ id }) => id)).toEqual([ids.late, ...[ids.lapsed, ids.dead, ids.done].sort().reverse()]);
  expect(second.next).toBeUndefined();

  for (const [argv, holds, code = 0] of commands(ids)) {
    const { exit, err, value } = await json(...argv);
    expect.soft([argv.join(" "), exit, err]).toEqual([argv.join(" "), code, ""]);
    expect
      .soft(
        Object.keys(value)
          .sort()
          .filter((name) => holds.includes(name)),
        argv.join(" "),
      )
      .toEqual(holds);
  }
  const { items: keys } = (await json("api-keys", "list")).value as { items: { id: string }[] };
  const key = keys[0]?.id as string;
  expect((await json("api-keys", "rotate", key)).value).toMatchObject({ key: { id: key }, secret: expect.stringContaining(key) });
  expect((await json("api-keys", "revoke", key)).value).toMatchObject({ id: key, revokedAt: expect.any(String) });
  const { items: entries } = (await json("audit", "list")).value as { items: { action: string; actor: string }[] };
  expect(entries.slice(0, 2).map(({ action }) => action)).toEqual(["apiKeys.revoke", "apiKeys.rotate"]);

  expect((await at("jobs", "show", UNKNOWN)).exit).toBe(3);
  expect((await at("jobs", "list", "--state", "lost")).exit).toBe(2);
  expect((await at("jobs", "delete", ids.late)).exit).toBe(4);
}

describe("every command, with --json", () => {
  test("works on a folder", { timeout: 240_000 }, async () => {
    using data = temporaryFolder();
    // Kept open, so that the server of the folder is started once.
    await using _kept = await open(data.path, { maintenance: false });
    await checkStore(data.path);
  });

  test("works on a server", { timeout: 240_000 }, async () => {
    await using server = serve("memory:", ["--components", "api,maintenance"], PEPPER);
    await checkStore(await server.up());
  });

  test("is one that the table here has, unless it is about no store", async () => {
    const { out } = await runPawlWith({}, "completion", "bash");
    const paths = [...out.matchAll(/path="([a-z -]+)" ;;/g)].map(([, path]) => path as string);
    const leaves = paths.filter((path) => !paths.some((other) => other.startsWith(`${path} `)));
    const coveredCommands = [
      ...commands({ done: "", dead: "", lapsed: "", late: "" }).map(([argv]) => argv),
      ["jobs", "list"],
      ["api-keys", "rotate"],
      ["api-keys", "revoke"],
    ];
    const missing = leaves.filter((path) => !coveredCommands.some((argv) => argv.join(" ").startsWith(path)));
    expect(missing.filter((path) => !ELSEWHERE.includes(path))).toEqual([]);
  });
});

/** Of no store, or with tests of their own on all three. */
const ELSEWHERE = [
  ...["dev", "serve", "check", "completion", "demo"],
  ...["series show", "tenants export", "tenants purge", "encryption status", "encryption rewrap", "encryption rotate"],
];

describeOn("embedded18", () => {
  test("every command, with --json, works on a database", { timeout: 240_000 }, async () => {
    await using database = await migratedDatabase();
    await checkStore(database.url);
  });
});
