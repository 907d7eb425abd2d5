import pg from "pg";
import { TestClock, World } from "../../../packages/pawl/conformance/world.js";
import type { Store } from "../../../packages/pawl/src/store/port/index.js";
import type { Driver } from "../../../packages/pawl/src/store/postgres/drivers/driver.js";
import { pgDriver } from "../../../packages/pawl/src/store/postgres/drivers/pg.js";
import { storeOn } from "../races/race.js";
import { type Address, type Database, type ServerName, testClockDatabase } from "../servers/servers.js";

/** Several stores on one database under one clock: each is a process of its own, as far as the database can tell. */
export class SimulatedProcesses implements AsyncDisposable {
  readonly clock = new TestClock();
  readonly #stores: Store[] = [];

  private constructor(
    readonly database: Database,
    /** the test's own connection, past any pooler */
    readonly control: pg.Client,
  ) {}

  static async open(server: ServerName = "embedded18"): Promise<SimulatedProcesses> {
    const database = await testClockDatabase(server);
    const control = new pg.Client(database.directConfig);
    await control.connect();
    return new SimulatedProcesses(database, control);
  }

  start(): World {
    const store = storeOn(driverOn(this.database.config), this.clock);
    this.#stores.push(store);
    return new World(store, this.clock);
  }

  async column<T>(text: string): Promise<readonly T[]> {
    return (await this.control.query<[T]>({ text, rowMode: "array" })).rows.map(([value]) => value);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const store of this.#stores) await store.close();
    await this.control.end();
    await this.database.drop();
  }
}

function driverOn(config: Address & { readonly database: string }): Driver {
  return pgDriver({ config: { ...config, max: 3 }, prepare: "auto", statementTimeout: 30_000 });
}
