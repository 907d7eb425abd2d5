import pg from "pg";
import { adapterSuite, CARTS } from "./suite.js";

adapterSuite({
  name: "pg",
  async connect(database) {
    const pool = new pg.Pool({ ...database.config, max: 5 });
    await pool.query(CARTS);
    return {
      async transaction(work) {
        const client = await pool.connect();
        try {
          await client.query("begin");
          const answer = await work({ tx: client, saveCart: (id) => client.query("insert into cart values ($1)", [id]) });
          await client.query("commit");
          return answer;
        } catch (error) {
          await client.query("rollback");
          throw error;
        } finally {
          client.release();
        }
      },
      close: () => pool.end(),
    };
  },
});
