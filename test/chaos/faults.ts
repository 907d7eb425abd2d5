import { setTimeout as pause } from "node:timers/promises";
import type { ProcessFixture } from "../support/fixtures/process-fixture.js";
import type { SeededRandom } from "../support/seeded-random.js";
import type { PrivateServer } from "../support/servers/private-server.js";
import type { TcpProxy } from "../support/servers/tcp-proxy.js";
import type { Fleet } from "./fleet.js";

export interface ChaosContext {
  readonly fixture: ProcessFixture;
  readonly server: PrivateServer;
  readonly proxy: TcpProxy;
  readonly fleet: Fleet;
  readonly random: SeededRandom;
}

/** One thing that goes wrong, and is right again when it resolves. */
export type Fault = (context: ChaosContext) => Promise<void>;

const TERMINATE = "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name like 'pawl%'";

export const FAULTS: Readonly<Record<string, Fault>> = {
  "worker killed": async ({ fleet, random }) => random.pick(fleet.alive).kill(),

  "worker told to stop": async ({ fleet, random }) => {
    const worker = random.pick(fleet.alive);
    worker.signal("SIGTERM");
    if (random.random() < 0.2) worker.signal("SIGTERM");
    await Promise.race([worker.exited, pause(10_000)]);
  },

  "worker frozen": async ({ fleet, random }) => {
    const worker = random.pick(fleet.alive);
    worker.freeze();
    await pause(random.between(500, 8_000));
    await worker.thaw();
  },

  "server killed": async ({ server, fixture }) => {
    await server.restart("SIGKILL");
    await fixture.reconnect();
  },

  "server restarted": async ({ server, fixture }) => {
    await server.restart("SIGINT");
    await fixture.reconnect();
  },

  "connections ended": async ({ fixture }) => void (await fixture.rows(TERMINATE)),

  "connections cut": async ({ proxy, random }) =>
    proxy.cut(random.random() < 0.5 ? {} : { only: random.pick(["pawl", "pawl listen", "pawl renewal"]) }),

  "connections refused": async ({ proxy, random }) => {
    await proxy.refuse();
    await pause(random.between(200, 8_000));
    await proxy.accept();
  },

  "connections silent": async ({ proxy, random }) => {
    proxy.blackhole(random.random() < 0.5 ? {} : { only: random.pick(["pawl", "pawl listen", "pawl renewal"]) });
    await pause(random.between(200, 6_000));
    proxy.heal();
  },

  "connections slow": async ({ proxy, random }) => {
    proxy.delay(random.between(5, 150));
    await pause(random.between(500, 4_000));
    proxy.heal();
  },

  "answer lost": async ({ proxy, random }) => {
    await Promise.race([proxy.loseAnswer(random.pick([/commit\0/, /pawl_settle/, /pawl_claim/, /pawl_enqueue/])), pause(3_000)]);
  },
};
