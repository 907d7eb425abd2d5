import { describe, expect, it } from "vitest";
import { ACCESS, ACTIONS, type Action, checkGrants, type Grant, type Identity, permit, ROLES, type Role } from "./roles.js";

const who = (tenant: string | undefined, ...grants: readonly Grant[]): Identity => ({ tenant, grants });
const why = (...asked: Parameters<typeof permit>) => {
  const permission = permit(...asked);
  return permission.allowed ? "allowed" : permission.why;
};

describe("who may do what", () => {
  it("is the whole table: every role and action", () => {
    const table = Object.fromEntries(
      ACTIONS.map((action) => [action, ROLES.filter((role) => permit(who(undefined, { role }), action).allowed).join(" ")]),
    );
    expect(table).toEqual({
      "jobs.read": "admin operator producer viewer",
      "jobs.write": "admin operator producer",
      "jobs.control": "admin operator",
      "jobs.export": "admin",
      "schedules.read": "admin operator producer viewer",
      "schedules.write": "admin operator",
      "queues.read": "admin operator viewer",
      "queues.write": "admin operator",
      "tasks.read": "admin operator producer worker viewer",
      "tasks.write": "admin operator",
      "tenants.read": "admin operator viewer",
      "tenants.write": "admin",
      "tenants.purge": "admin",
      "workers.read": "admin operator viewer",
      "breakers.read": "admin operator viewer",
      "breakers.write": "admin operator",
      "limits.read": "admin operator viewer",
      "events.read": "admin operator viewer",
      "info.read": "admin operator producer worker viewer",
      "leases.write": "admin worker",
      "targets.read": "admin operator",
      "targets.write": "admin",
      "apiKeys.read": "admin",
      "apiKeys.write": "admin",
      "audit.read": "admin",
    });
  });

  it("denies what is in no table, whoever asks", () => {
    for (const action of ["jobs", "toString", "__proto__", "constructor"])
      expect(why(who(undefined, { role: "admin" }), action as Action)).toBe("role");
    expect(why(who(undefined, { role: "root" as Role }), "jobs.read")).toBe("role");
    expect(why(who(undefined), "info.read")).toBe("role");
  });

  it("denies a tenant what is another's, and what is everybody's", () => {
    const mine = who("acme", { role: "admin" });
    expect(why(mine, "jobs.read", { tenant: "acme" })).toBe("allowed");
    expect(why(mine, "jobs.read", { tenant: "umbrella" })).toBe("tenant");
    for (const action of ACTIONS) expect(why(mine, action)).toBe(ACCESS[action].whole ? "tenant" : "allowed");
    expect(why(who(undefined, { role: "admin" }), "jobs.read", { tenant: "umbrella" })).toBe("allowed");
  });

  it("holds a grant to its tasks and queues, and takes what is not named for all of them", () => {
    const grant = who("acme", { role: "producer", tasks: ["mail.*", "report"], queues: ["bulk"] });
    expect(why(grant, "jobs.write", { task: "mail.send", queue: "bulk" })).toBe("allowed");
    expect(why(grant, "jobs.write", { task: "report", queue: "bulk" })).toBe("allowed");
    expect(why(grant, "jobs.write", { task: "reports", queue: "bulk" })).toBe("task");
    expect(why(grant, "jobs.write", { task: "report", queue: "default" })).toBe("queue");
    expect(why(grant, "jobs.write", { queue: "bulk" })).toBe("task");
    expect(why(grant, "jobs.write", { task: "report" })).toBe("queue");
    expect(why(grant, "info.read")).toBe("allowed");
    expect(why(who("acme", { role: "producer", tasks: ["*"], queues: ["**"] }), "jobs.write")).toBe("allowed");
  });

  it("never puts two grants together: each must do alone", () => {
    const both = who("acme", { role: "producer", tasks: ["a"], queues: ["x"] }, { role: "producer", tasks: ["b"], queues: ["y"] });
    expect(why(both, "jobs.write", { task: "b", queue: "y" })).toBe("allowed");
    expect(why(both, "jobs.write", { task: "a", queue: "y" })).toBe("queue");
    const mixed = who("acme", { role: "viewer" }, { role: "producer", tasks: ["a"] });
    expect(why(mixed, "jobs.read", { task: "b", queue: "y" })).toBe("allowed");
    expect(why(mixed, "jobs.write", { task: "b", queue: "y" })).toBe("task");
  });

  it("lets nobody make keys who is held to some tasks or queues: a key of theirs could reach further", () => {
    expect(why(who("acme", { role: "admin" }), "apiKeys.write")).toBe("allowed");
    expect(why(who("acme", { role: "operator" }), "apiKeys.write")).toBe("role");
    expect(why(who("acme", { role: "admin", tasks: ["a"] }), "apiKeys.write")).toBe("task");
    expect(why(who("acme", { role: "admin", queues: ["x"] }), "apiKeys.write")).toBe("queue");
  });
});

describe("grants as given", () => {
  it("are refused by name where they make no sense", () => {
    expect(checkGrants("grants", [{ role: "viewer" }, { role: "worker", tasks: ["a*"], queues: ["b"] }])).toHaveLength(2);
    const bad: readonly [unknown, RegExp][] = [
      [{ role: "viewer" }, /grants is invalid: an object is not an array/],
      [[], /1 to 16/],
      [Array(17).fill({ role: "viewer" }), /1 to 16/],
      [["viewer"], /grants\[0\]/],
      [[{ role: "viewr" }], /did you mean viewer/],
      [[{}], /grants\[0\]\.role/],
      [[{ role: "viewer", task: ["a"] }], /did you mean tasks/],
      [[{ role: "viewer", tasks: [] }], /grants\[0\]\.tasks is invalid: there must be 1 to 32/],
      [[{ role: "viewer", queues: ["ok", ""] }], /grants\[0\]\.queues\[1\]/],
      [[{ role: "viewer", queues: ["a\u0000b"] }], /not a pattern/],
      [[{ role: "viewer", queues: [/a/] }], /not a pattern/],
      [[{ role: "viewer", queues: ["x".repeat(129)] }], /1 to 128/],
    ];
    for (const [given, message] of bad) expect(() => checkGrants("grants", given)).toThrow(message);
  });
});
