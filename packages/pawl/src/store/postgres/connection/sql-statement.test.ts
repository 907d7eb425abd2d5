import { expect, expectTypeOf, it } from "vitest";
import type { Queryable, Statement } from "../drivers/driver.js";
import { numbersText } from "./arrays.js";
import { sqlFile, sqlText } from "./sql-statement.js";

it("values are sent in the order of their numbers, arrays as texts, and an array of nothing but nulls as an empty one", () => {
  const one = sqlText(
    "one",
    "select :now::float8, unnest(:job.task::text[], :job.delay::float8[], :job.input::text[]) as j(task, delay, input), :ids::int[]",
  );
  const job = { task: ['a"b', undefined], delay: [1, null], input: [undefined, undefined] };
  expect(one.values({ now: null, job, ids: [1, 2] })).toEqual([null, '{"a\\"b",NULL}', "{1,NULL}", "{}", "{1,2}"]);
  expect(one.values({ now: 5, job: { ...job, delay: [] }, ids: numbersText([3]) })).toEqual([5, '{"a\\"b",NULL}', "{}", "{}", "{3}"]);
});

it("the names of a text are those of its values", () => {
  const one = sqlText("one", "select :worker_name::text, (:ids::int[])[1 : 2] -- guard: here\n, :job.last_home::int[]");
  type Values = Parameters<typeof one.values>[0];
  expectTypeOf<keyof Values>().toEqualTypeOf<"workerName" | "ids" | "job">();
  expectTypeOf<keyof Values["job"]>().toEqualTypeOf<"lastHome">();
  expect(one.statement.text).toBe("select $1::text, ($2::int[])[1 : 2] -- guard: here\n, $3::int[]");
});

it("a file has its own name, and so does the variant that has its block", async () => {
  const sent: Statement[] = [];
  const on: Queryable = {
    async query(statement) {
      sent.push(statement);
      return [];
    },
  };
  await sqlFile("settle/renew.sql").query(on, { now: null, worker: 1, duration: 5, leases: ["7"] });
  expect(sent).toMatchObject([{ name: "pawl_renew" }]);
  expect(sqlFile("settle/settle.sql", { hot: "settle" }).statement).toMatchObject({ name: "pawl_settle_limited", hot: "settle" });
  const plain = sqlFile("settle/settle.sql", { without: "limited" }).statement;
  expect(plain.name).toBe("pawl_settle");
  expect(plain.text).not.toContain("passed_on");
});
