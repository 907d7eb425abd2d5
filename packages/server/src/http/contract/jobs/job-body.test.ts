import { OPTION_ROWS } from "pawl/service";
import { expect, test } from "vitest";
import { reader } from "../../request/validate.js";
import { enqueueJob } from "./jobs.js";
import { putSchedule } from "./schedules.js";

const enqueue = reader(enqueueJob);
const put = reader(putSchedule);
const inJson = OPTION_ROWS.filter(([, { kind }]) => kind !== "transaction");

test.each(inJson)("a body may have %s as its example has it", (name, { example }) => {
  expect(enqueue({ params: {}, query: {}, body: { task: "t", [name]: example } }).body).toMatchObject({ [name]: example });
});

test.each(inJson)("the job of a schedule has %s only where the table says so", (name, { example, alsoOf }) => {
  const read = () => put({ params: { schedule: "s" }, query: {}, body: { task: "t", every: "1h", job: { [name]: example } } });
  if (alsoOf?.includes("schedule") === true) expect(read().body).toMatchObject({ job: { [name]: example } });
  else expect(read).toThrow(name);
});

test("a transaction is of a process that has the database open", () => {
  expect(() => enqueue({ params: {}, query: {}, body: { task: "t", tx: {} } })).toThrow("tx");
});
