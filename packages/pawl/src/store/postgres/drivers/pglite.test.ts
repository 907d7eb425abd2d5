import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { spawnThread } from "../../../runtime/io/thread.js";
import { openFolder } from "../embedded/folder.js";
import { nameOf } from "../embedded/processes.js";
import type { Driver, DriverRow } from "./driver.js";
import { openPglite } from "./pglite.js";

const sql = (text: string) => ({ name: text, text });
/** a promise, and the call that fulfils it */
function barrier(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((fulfil) => {
    resolve = fulfil;
  });
  return { promise, resolve };
}
const numbers = async (driver: Driver) => (await driver.query<{ n: number }>(sql("select n from numbers order by n"))).map(({ n }) => n);

describe("PGlite in memory", () => {
  let driver: Driver;
  beforeAll(async () => {
    driver = await openPglite();
    await driver.script("create table numbers (n int4 primary key); create table others (n int4 references numbers deferrable initially deferred)");
  });
  afterEach(() => driver.script("truncate numbers, others"));
  afterAll(() => driver.close());

  it("takes and answers the same values as pg", async () => {
    const text = `select $1::text as t, $2::float8 as f, $3::int4 as i, $4::bool as b, $5::uuid as u, $6::int8::text as big, $7::text as nothing,
      8::int8 as raw, array_to_string($8::text[], '|') as list, (select sum(x)::int4 from unnest($9::int4[]) x) as sum, $10::jsonb->>'a' as json`;
    const id = "0198a5c8-0000-7000-8000-000000000001";
    const values = ["é\u{1f600}", 2.5, 3, true, id, 9007199254740993n, undefined, '{a,"b,c"}', "{1,2}", '{"a":"b"}'];
    const expected = {
      t: "é\u{1f600}",
      f: 2.5,
      i: 3,
      b: true,
      u: id,
      big: "9007199254740993",
      nothing: null,
      raw: "8",
      list: "a|b,c",
      sum: 3,
      json: "b",
    };
    expect(await driver.query(sql(text), values)).toEqual([expected]);
  });

  it("tells the SQLSTATE and the constraint of an error", async () => {
    await driver.query(sql("insert into numbers values (1)"));
    await expect(driver.query(sql("insert into numbers values (1)"))).rejects.toMatchObject({
      name: "DriverError",
      fate: "refused",
      code: "23505",
      cause: { code: "23505", constraint: "numbers_pkey" },
    });
    await expect(driver.query(sql("select $1::text"), ["\0"])).rejects.toMatchObject({ code: "22021" });
    await expect(driver.query(sql("select $1::text"), [() => 1])).rejects.toThrow("could not be cloned");
  });

  it("commits a transaction and gives what it returned", async () => {
    const result = await driver.transaction(async (tx) => {
      await tx.query(sql("insert into numbers values ($1::int4)"), [1]);
      return (await tx.run("insert into numbers values (2) returning n")).rows;
    });
    expect(result).toEqual([{ n: 2 }]);
    expect(await numbers(driver)).toEqual([1, 2]);
  });

  it("rolls back what throws", async () => {
    const failing = driver.transaction(async (tx) => {
      await tx.query(sql("insert into numbers values (1)"));
      throw new Error("changed my mind");
    });
    await expect(failing).rejects.toThrow("changed my mind");
    expect(await numbers(driver)).toEqual([]);
  });

  it("does not take a commit for one that became a rollback, or failed", async () => {
    const swallowing = driver.transaction(async (tx) => {
      await tx.query(sql("insert into numbers values (1)"));
      await tx.run("select 1/0").catch((error: unknown) => expect(error).toMatchObject({ code: "22012" }));
    });
    await expect(swallowing).rejects.toMatchObject({ fate: "refused", code: "25P02" });
    const deferred = driver.transaction((tx) => tx.query(sql("insert into others values (7)")));
    await expect(deferred).rejects.toMatchObject({ fate: "refused", code: "23503" });
    expect(await numbers(driver)).toEqual([]);
  });

  it("lets others wait for an open transaction", async () => {
    const { promise: begun, resolve: begin } = barrier();
    const { promise: ended, resolve: end } = barrier();
    const first = driver.transaction(async (tx) => {
      await tx.query(sql("insert into numbers values (1)"));
      begin();
      await ended;
      await tx.query(sql("insert into numbers values (2)"));
    });
    await begun;
    const order: string[] = [];
    const reading = numbers(driver).then((found) => order.push(`read ${found}`));
    const second = driver.transaction((tx) => tx.query(sql("insert into numbers values (3)"))).then(() => order.push("second"));
    end();
    await Promise.all([first.then(() => order.push("first")), reading, second]);
    expect(order).toEqual(["first", "read 1,2", "second"]);
  });

  it("refuses a call outside the transaction from inside of it, where it would wait for ever", async () => {
    const nested = { code: "transaction_nested" };
    await driver.transaction(async (tx) => {
      await expect(driver.query(sql("select 1"))).rejects.toMatchObject(nested);
      await expect(driver.script("select 1")).rejects.toMatchObject(nested);
      await expect(driver.transaction(async () => {})).rejects.toMatchObject(nested);
      await expect(driver.close()).rejects.toMatchObject(nested);
      await tx.query(sql("insert into numbers values (1)"));
    });
    expect(await numbers(driver)).toEqual([1]);
  });

  it("lets what a transaction started go on after it, and closes the transaction itself", async () => {
    const { promise: ended, resolve: end } = barrier();
    const started = await driver.transaction(async (tx) => ({ later: ended.then(() => numbers(driver)), tx }));
    end();
    expect(await started.later).toEqual([]);
    await expect(started.tx.query(sql("select 1"))).rejects.toMatchObject({ code: "closed" });
    await expect(started.tx.run("select 1")).rejects.toMatchObject({ code: "closed" });
  });

  it("runs a script as a whole, and leaves no transaction open behind a failed one", async () => {
    await expect(driver.script("insert into numbers values (1); select 1/0")).rejects.toMatchObject({ code: "22012" });
    await expect(driver.script("begin; insert into numbers values (1); select 1/0; commit")).rejects.toMatchObject({ code: "22012" });
    expect(await numbers(driver)).toEqual([]);
  });

  it("hears notifications once per listener until closed", async () => {
    const heard: string[] = [];
    const listen = async (name: string) => {
      const { promise: up, resolve } = barrier();
      const subscription = driver.listen("Some channel", { message: (payload) => heard.push(`${name} ${payload}`), up: resolve, down: () => {} });
      await up;
      return subscription;
    };
    const notify = (payload: string) => driver.query(sql("select pg_notify('Some channel', $1::text)::text"), [payload]);
    const [a, b] = [await listen("a"), await listen("b")];
    await notify("1");
    await a.close();
    await notify("2");
    await b.close();
    await notify("3");
    const c = await listen("c");
    await driver.transaction((tx) => tx.query(sql("select pg_notify('Some channel', '4')::text")));
    await c.close();
    expect(heard).toEqual(["a 1", "b 1", "b 2", "c 4"]);
  });

  it("serves another thread through the renewal link while this one is blocked", async () => {
    const link = await driver.renewalLink();
    if (link?.kind !== "port") throw new Error("no port");
    const done = new Int32Array(new SharedArrayBuffer(4));
    const file = "../../../../../../test/support/processes/port-thread.js";
    const thread = spawnThread(import.meta.url, file, { workerData: { port: link.port, done }, transferList: [link.port] });
    await once(thread, "message");
    thread.postMessage("go");
    expect(Atomics.wait(done, 0, 0, 5_000)).not.toBe("timed-out");
    await thread.terminate();
    expect(await numbers(driver)).toEqual([1, 2, 3]);
  });
});

describe("PGlite in a folder", () => {
  let scratch: string;
  let folder: string;
  const children: ChildProcess[] = [];
  beforeAll(async () => {
    scratch = fs.mkdtempSync(join(tmpdir(), "pawl-pglite-"));
    folder = join(scratch, "a store");
    const driver = await openPglite(folder);
    await driver.script("create table numbers (n int4 primary key)");
    await driver.close();
  });
  afterEach(() => {
    for (const child of children.splice(0)) child.kill("SIGKILL");
  });
  afterAll(() => fs.rmSync(scratch, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }));

  /** Another process that opens the folder, commits a number, says so, and stays. */
  async function openElsewhere(n: number): Promise<{ child: ChildProcess; pid: number }> {
    const code = `
      import { openPglite } from ${JSON.stringify(new URL("./pglite.ts", import.meta.url).href)};
      const driver = await openPglite(${JSON.stringify(folder)});
      await driver.query({ name: "", text: "insert into numbers values (${n})" });
      console.log("committed");
      setInterval(() => {}, 1000);
    `;
    const repository = fileURLToPath(new URL("../../../../../..", import.meta.url));
    const args = ["--import", "tsx", "--input-type=module", "-e", code];
    const child = spawn(process.execPath, args, { cwd: repository, stdio: ["ignore", "pipe", "inherit"] });
    children.push(child);
    const [line] = await once(createInterface(child.stdout as NodeJS.ReadableStream), "line");
    expect(line).toBe("committed");
    return { child, pid: child.pid as number };
  }

  it("refuses a second process, and this one a second time, and names who has it", async () => {
    const { child, pid } = await openElsewhere(1);
    await expect(openPglite(folder)).rejects.toMatchObject({ code: "folder_busy", message: expect.stringContaining(`process ${pid}`) });
    child.kill("SIGKILL");
    await once(child, "exit");
    const driver = await openPglite(folder);
    await expect(openPglite(folder)).rejects.toMatchObject({ code: "folder_busy", details: { pid: process.pid } });
    await driver.close();
  });

  it("keeps what was committed before kill -9", async () => {
    const { child } = await openElsewhere(2);
    child.kill("SIGKILL");
    await once(child, "exit");
    const driver = await openPglite(folder);
    expect(await numbers(driver)).toContain(2);
    await driver.close();
  });

  it("breaks the lock of a dead process whose pid another one has", async () => {
    const living = nameOf(process.ppid);
    if (living === undefined) throw new Error("the parent process has no name here");
    const locks = fs.readdirSync(folder).filter((name) => /^lock\.\d+$/.test(name));
    expect(locks.length).toBeGreaterThan(0);
    for (const lock of locks) fs.writeFileSync(join(folder, lock), living.replace(/\d+$/, "1"));
    const driver = await openPglite(folder);
    expect(await driver.query<DriverRow>(sql("select 1 as one"))).toEqual([{ one: 1 }]);
    await driver.close();
  });

  it("refuses what the native server made, and the native server what is PGlite's", async () => {
    expect(() => openFolder(folder)).toThrow("it was made by pglite");
    const other = join(scratch, "native");
    fs.mkdirSync(other);
    fs.writeFileSync(join(other, "pawl.json"), JSON.stringify({ engine: "postgres" }));
    await expect(openPglite(other)).rejects.toMatchObject({ code: "folder_invalid", message: expect.stringContaining("made by postgres") });
  });

  it("is closed for good, twice without harm, and frees the folder", async () => {
    const driver = await openPglite(folder);
    const running = driver.query<DriverRow>(sql("select 1 as one"));
    await Promise.all([driver.close(), driver.close()]);
    expect(await running).toEqual([{ one: 1 }]);
    await expect(driver.query(sql("select 1"))).rejects.toMatchObject({ code: "closed" });
    await (await openPglite(folder)).close();
  });
});
