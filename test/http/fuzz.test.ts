import { randomInt } from "node:crypto";
import { open } from "pawl";
import { describe, expect, test } from "vitest";
import { CONTRACT } from "../../packages/server/src/http/contract/index.ts";
import { onceOrAgain } from "../support/again.js";
import { seededRandom } from "../support/seeded-random.ts";
import { describeOn, migratedDatabase } from "../support/servers/servers.ts";
import { type Fuzzed, Hostile, requestOf } from "./hostile.ts";
import { openApp } from "./support.ts";

/** To repeat a run, or to look for longer: PAWL_SEED=…, PAWL_FUZZ=1000. */
const SEED = Number(process.env.PAWL_SEED ?? randomInt(2 ** 31));
const ROUNDS = Number(process.env.PAWL_FUZZ ?? 40);
const MASTER = Buffer.alloc(32, 7).toString("base64");

async function run(store: string, rounds: number): Promise<void> {
  // It lacks nothing that its operator has to give: what fails then is its own fault.
  const pawl = await open(store, { maintenance: false, apiKeys: { pepper: "a pepper of this test" }, encryption: { masterKeys: [MASTER] } });
  await using api = await openApp({ pawl });
  const hostile = new Hostile(seededRandom("fuzz", SEED));
  const job: string[] = [];
  for (const delay of [0, "1h"]) job.push((await pawl.enqueue("some", { a: 1 }, { delay, tenant: "acme" })).id);
  await pawl.schedules.put("some", "some", { every: "1h" });
  const frozen = JSON.stringify(Object.getOwnPropertyNames(Object.prototype));
  const seen = new Map<number, number>();
  for (let round = 0; round < rounds; round++) {
    for (const route of CONTRACT) {
      const request = requestOf(route, hostile, { job });
      const { statusCode } = await send(request);
      seen.set(statusCode, (seen.get(statusCode) ?? 0) + 1);
    }
  }
  // Or it would not have got past the checks at all.
  expect(seen.get(200) ?? 0).toBeGreaterThan(rounds);
  expect(seen.get(422) ?? 0).toBeGreaterThan(rounds);
  expect(JSON.stringify(Object.getOwnPropertyNames(Object.prototype))).toBe(frozen);

  async function send({ method, url, headers, raw }: Fuzzed) {
    const description = `PAWL_SEED=${SEED}: ${method} ${url} ${JSON.stringify(headers)} ${raw ?? ""}`;
    const key = hostile.chance.pick(["all-admin", "acme-admin"]);
    const answer = await api.request(method, url, { key, headers, ...(raw === undefined ? {} : { raw }) }).catch((error: unknown) => {
      throw new Error(description, { cause: error });
    });
    if (answer.statusCode >= 500) throw new Error(`${description} → ${answer.body}`, { cause: api.faults.at(-1) });
    return answer;
  }
}

describe("S23: whatever is sent to a route, the service does not fail", () => {
  test(`in memory (seed ${SEED})`, { timeout: 300_000 }, () => run("memory:", ROUNDS));

  for (const server of onceOrAgain(["embedded18", "debian15"] as const)) {
    describeOn(server, () => {
      test(`(seed ${SEED})`, { timeout: 300_000 }, async () => {
        await using database = await migratedDatabase(server);
        await run(database.url, Math.ceil(ROUNDS / 8));
      });
    });
  }
});
