import { Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import { fromKysely } from "../../packages/pawl/src/adapters.js";
import { adapterSuite, CARTS } from "./suite.js";

adapterSuite({
  name: "Kysely",
  async connect(database) {
    const pool = new pg.Pool({ ...database.config, max: 5 });
    await pool.query(CARTS);
    const db = new Kysely<{ cart: { id: string } }>({ dialect: new PostgresDialect({ pool }) });
    return {
      transaction: (work) =>
        db.transaction().execute((trx) => work({ tx: fromKysely(trx), saveCart: (id) => trx.insertInto("cart").values({ id }).execute() })),
      close: () => db.destroy(),
    };
  },
});
