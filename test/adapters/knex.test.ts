import knex from "knex";
import { fromKnex } from "../../packages/pawl/src/adapters.js";
import { adapterSuite, CARTS } from "./suite.js";

adapterSuite({
  name: "Knex",
  async connect(database) {
    const db = knex({ client: "pg", connection: { ...database.config }, pool: { min: 0, max: 5 } });
    await db.raw(CARTS);
    return {
      transaction: (work) => db.transaction((trx) => work({ tx: fromKnex(trx), saveCart: (id) => trx("cart").insert({ id }) })),
      close: () => db.destroy(),
    };
  },
});
