import { drizzle } from "drizzle-orm/node-postgres";
import { pgTable, text } from "drizzle-orm/pg-core";
import pg from "pg";
import { fromDrizzle } from "../../packages/pawl/src/adapters.js";
import { adapterSuite, CARTS } from "./suite.js";

const carts = pgTable("cart", { id: text("id").primaryKey() });

adapterSuite({
  name: "Drizzle",
  async connect(database) {
    const pool = new pg.Pool({ ...database.config, max: 5 });
    await pool.query(CARTS);
    const db = drizzle(pool);
    return {
      transaction: (work) => db.transaction((tx) => work({ tx: fromDrizzle(tx), saveCart: (id) => tx.insert(carts).values({ id }) })),
      close: () => pool.end(),
    };
  },
});
