import { expect, test } from "vitest";
import { task } from "../../core/jobs/task.js";
import { open } from "../../open.js";

const pay = task("pay.card", { retry: [] }, (input: string) => {
  throw new Error(`no funds on ${input}`);
});
const mail = task("mail", {}, (input: string) => input);

test("what jobs of redacted tasks hold is not shown where many are listed, and is to who asks for one", async () => {
  await using pawl = await open("memory:", { tasks: [pay, mail], redact: ["pay.*"] });
  await pawl.work();
  const dead = await pawl.enqueue(pay, "4111");
  await pawl.jobs.wait(dead);
  const sent = await pawl.enqueue(mail, "hello");
  await sent.result();
  const listed = [await pawl.jobs.list(), await pawl.dead.list(), (await pawl.dead.groups()).items.map(({ sample }) => sample)];
  expect(JSON.stringify(listed)).not.toContain("4111");
  expect((await pawl.jobs.list()).items).toMatchObject([
    { task: "mail", input: "hello", output: "hello" },
    { task: "pay.card", input: "(redacted)", redacted: true, failure: { kind: "error", message: "(redacted)" } },
  ]);
  expect(await pawl.jobs.get(dead)).toMatchObject({ input: "4111" });
  const exported = [];
  for await (const entry of pawl.tenants.export("default")) if (entry.kind === "job") exported.push(entry.job.input);
  expect(exported).toEqual(["hello", "4111"]);
});

test("a redrive that edits inputs sees them", async () => {
  await using pawl = await open("memory:", { tasks: [pay], redact: ["*"] });
  await pawl.work();
  const job = await pawl.enqueue(pay, "4111");
  await pawl.jobs.wait(job);
  const seen: unknown[] = [];
  await pawl.dead.redrive({}, { edit: (input) => void seen.push(input) });
  expect(seen).toEqual(["4111"]);
});

test.each([
  ["a text", "pay.*"],
  ["a pattern that is none", [""]],
  ["a number", [1]],
])("%s is refused", async (_, redact) => {
  await expect(open("memory:", { redact: redact as readonly string[] })).rejects.toMatchObject({ code: "option_invalid" });
});
