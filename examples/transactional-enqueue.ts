/**
 * A job enqueued in your own transaction exists exactly if that commits: no order without its confirmation, no
 * confirmation without its order. With `pg` the client itself is passed; for others there are `fromDrizzle`,
 * `fromKysely`, `fromKnex` and `fromPrisma` of `pawl/adapters`.
 *
 *   node --import tsx examples/transactional-enqueue.ts postgres://localhost/app
 */
import { open, task } from "pawl";
import pg from "pg";

const confirm = task<{ order: number }, string>("order.confirm", ({ order }) => `confirmed order ${order}`);

const url = process.argv[2] ?? "postgres://localhost/app";
const pawl = await open(url, { tasks: [confirm] });
const pool = new pg.Pool({ connectionString: url });
await pool.query("create table if not exists orders (id int primary key)");

async function placeOrder(order: number, payment: "accepted" | "declined") {
  const client = await pool.connect();
  try {
    await client.query("begin");
    await client.query("insert into orders values ($1)", [order]);
    const job = await pawl.enqueue(confirm, { order }, { tx: client });
    if (payment === "declined") throw new Error(`payment of order ${order} was declined`);
    await client.query("commit");
    // Workers would find it within a second or two; this has them look now.
    pawl.wake();
    return job;
  } catch (error) {
    await client.query("rollback");
    throw error;
  } finally {
    client.release();
  }
}

await pawl.work();
const job = await placeOrder(1, "accepted");
console.log(await job.result());

await placeOrder(2, "declined").catch((error: Error) => console.log(error.message));
const { rows } = await pool.query("select id from orders");
const { items: jobs } = await pawl.jobs.list({ task: confirm.name });
console.log(`${rows.length} order and ${jobs.length} job are there`);

await pool.end();
await pawl.close();
