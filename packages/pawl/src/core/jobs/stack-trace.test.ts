import { expect, test } from "vitest";
import { failureOf } from "./failure.js";
import { withoutFolders } from "./stack-trace.js";

const shown = (stack: string) => withoutFolders({ kind: "error", name: "Error", message: "no", stack }).stack;

test.each([
  ["of a function", "    at handler (/srv/acme/dist/tasks/mail.js:10:5)", "    at handler (mail.js:10:5)"],
  ["of a module", "    at file:///srv/acme/tasks/mail.mjs:10:5", "    at mail.mjs:10:5"],
  ["that is awaited", "    at async run (file:///srv/acme/run.js:3:1)", "    at async run (run.js:3:1)"],
  ["with blanks in its folders", "    at handler (/home/ann lee/my app/mail.js:10:5)", "    at handler (mail.js:10:5)"],
  ["of a package", "    at fetch (/srv/acme/node_modules/got/dist/index.js:7:1)", "    at fetch (node_modules/got/dist/index.js:7:1)"],
  ["of Windows", "    at handler (C:\\apps\\acme\\mail.js:10:5)", "    at handler (mail.js:10:5)"],
  ["of a module of Windows", "    at file:///C:/apps/acme/mail.mjs:10:5", "    at mail.mjs:10:5"],
  ["of a share", "    at handler (\\\\box\\apps\\mail.js:10:5)", "    at handler (mail.js:10:5)"],
  ["of eval", "    at eval (eval at run (/srv/acme/run.js:1:1), <anonymous>:2:3)", "    at eval (eval at run (run.js:1:1), <anonymous>:2:3)"],
  ["of Python", '  File "/srv/acme/worker.py", line 3, in greet', '  File "worker.py", line 3, in greet'],
  ["of Ruby", "/srv/acme/worker.rb:3:in `greet'", "worker.rb:3:in `greet'"],
  ["of Go", "\t/srv/acme/main.go:12 +0x1d", "\tmain.go:12 +0x1d"],
])("a line of a stack %s keeps its file and loses its folders", (_, line, bare) => {
  expect(shown(`Error: no\n${line}\n${line}`)).toBe(`Error: no\n${bare}\n${bare}`);
});

test.each([
  "    at node:internal/modules/cjs/loader:1:2",
  "    at Promise.all (index 0)",
  "    at new Promise (<anonymous>)",
  "    at tasks/mail.js:1:2",
  "    at ./tasks/mail.js:1:2",
  "    at https://cdn.example/lib/a.js:1:2",
  "\tat com.acme.Mail.send(Mail.java:10)",
])("a line of a stack without folders of a machine stays as it is: %s", (line) => {
  expect(shown(`Error: no\n${line}`)).toBe(`Error: no\n${line}`);
});

test("what was thrown keeps its words, and causes lose their folders, too", () => {
  const failure = failureOf(new Error("GET /v1/users failed", { cause: new TypeError("no route to /v1/users") }));
  const here = import.meta.dirname;
  expect(failure.stack).toContain(here);
  expect(failure.causes?.[0]?.stack).toContain(here);
  const bare = withoutFolders(failure);
  expect(JSON.stringify(bare)).not.toContain(here);
  expect(bare).toMatchObject({ message: "GET /v1/users failed", causes: [{ message: "no route to /v1/users" }] });
  expect(bare.stack).toMatch(/^Error: GET \/v1\/users failed\n\s+at .*stack-trace\.test\.ts:\d+:\d+/);
});
