import { setTimeout as pause } from "node:timers/promises";
import type { PrivateServer } from "../support/private-server.js";
import type { Wire } from "../support/proxy.js";
import type { Chance } from "../support/seed.js";
import type { Stage } from "../support/stage.js";
import type { Fleet } from "./fleet.js";

export interface Battlefield {
  readonly stage: Stage;
  readonly server: PrivateServer;
  readonly proxy: Wire;
  readonly fleet: Fleet;
  readonly dice: Chance;
}

/** One thing that goes wrong, and is right again when it resolves. */
export type Fault = (field: Battlefield) => Promise<void>;

const TERMINATE = "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name like 'pawl%'";

export const FAULTS: Readonly<Record<string, Fault>> = {
  "worker killed": async ({ fleet, dice }) => dice.pick(fleet.alive).kill(),

  "worker told to stop": async ({ fleet, dice }) => {
    const worker = dice.pick(fleet.alive);
    worker.signal("SIGTERM");
    if (dice.random() < 0.2) worker.signal("SIGTERM");
    await Promise.race([worker.exited, pause(10_000)]);
  },

  "worker frozen": async ({ fleet, dice }) => {
    const worker = dice.pick(fleet.alive);
    worker.freeze();
    await pause(dice.between(500, 8_000));
    await worker.thaw();
  },

  "server killed": async ({ server, stage }) => {
    await server.restart("SIGKILL");
    await stage.reconnect();
  },

  "server restarted": async ({ server, stage }) => {
    await server.restart("SIGINT");
    await stage.reconnect();
  },

  "connections ended": async ({ stage }) => void (await stage.rows(TERMINATE)),

  "connections cut": async ({ proxy, dice }) => proxy.cut(dice.random() < 0.5 ? {} : { only: dice.pick(["pawl", "pawl listen", "pawl renewal"]) }),

  "connections refused": async ({ proxy, dice }) => {
    await proxy.refuse();
    await pause(dice.between(200, 8_000));
    await proxy.accept();
  },

  "connections silent": async ({ proxy, dice }) => {
    proxy.blackhole(dice.random() < 0.5 ? {} : { only: dice.pick(["pawl", "pawl listen", "pawl renewal"]) });
    await pause(dice.between(200, 6_000));
    proxy.heal();
  },

  "connections slow": async ({ proxy, dice }) => {
    proxy.delay(dice.between(5, 150));
    await pause(dice.between(500, 4_000));
    proxy.heal();
  },

  "answer lost": async ({ proxy, dice }) => {
    await Promise.race([proxy.loseAnswer(dice.pick([/commit\0/, /pawl_settle/, /pawl_claim/, /pawl_enqueue/])), pause(3_000)]);
  },
};
