import { apiKeyText, type LocalApiKeys, parseApiKey, pawlError, serviceOf } from "pawl/service";
import { openTest, type TestPawl } from "pawl/testing";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Access } from "../http/access/principal.js";
import { keyAccess } from "./key-access.js";

let world: TestPawl;
let keys: LocalApiKeys;
let access: Access;
let time = 0;

beforeEach(async () => {
  world = await openTest({ work: false, maintenance: false, apiKeys: { pepper: "a pepper of sixteen bytes or more" } });
  keys = serviceOf(world.pawl).apiKeys;
  time = 0;
  access = keyAccess(keys, () => time);
});
afterEach(() => world.close());

const make = () => keys.create({ name: "ci", tenant: "acme", grants: [{ role: "viewer" }] });
const authenticate = (text: string | undefined, address = "192.0.2.1") =>
  access.authenticate({ authorization: text === undefined ? undefined : `Bearer ${text}`, address, certificate: [] });
const wrongOf = (text: string) => apiKeyText({ ...(parseApiKey(text) as NonNullable<ReturnType<typeof parseApiKey>>), secret: "0".repeat(43) });

describe("a caller with an API key", () => {
  test("is who the key says", async () => {
    const { key, secret } = await make();
    expect(await authenticate(secret)).toEqual({ name: `key:${key.id}`, tenant: "acme", grants: [{ role: "viewer" }] });
    expect(await access.authenticate({ authorization: `bearer ${secret}`, address: "", certificate: [] })).toMatchObject({ tenant: "acme" });
  });

  test("learns nothing of why a key is not good", async () => {
    const { key, secret } = await make();
    const wrong = wrongOf(secret);
    const answers = [await authenticate(undefined), await authenticate("nonsense"), await authenticate(wrong), await authenticate("")];
    await keys.revoke(key.id);
    answers.push(await authenticate(secret));
    answers.push(await access.authenticate({ authorization: `Basic ${secret}`, address: "", certificate: [] }));
    for (const answer of answers) expect(answer).toEqual({ refused: "unauthenticated" });
  });

  test("that is wrong more than 20 times a minute is told to wait, and the key itself is locked for nobody (S6)", async () => {
    const { secret } = await make();
    for (let n = 0; n < 20; n++) expect(await authenticate(wrongOf(secret))).toEqual({ refused: "unauthenticated" });
    expect(await authenticate(wrongOf(secret))).toEqual({ refused: "limited", retryAfter: 3_000 });
    expect(await authenticate(secret), "not known here yet").toMatchObject({ tenant: "acme" });
    expect(await authenticate(wrongOf(secret)), "nor forgiven by it").toEqual({ refused: "limited", retryAfter: 3_000 });
    expect(await authenticate(secret), "known by now").toMatchObject({ tenant: "acme" });
    time += 3_000;
    expect(await authenticate(wrongOf(secret))).toEqual({ refused: "unauthenticated" });
    expect(await authenticate(wrongOf(secret))).toEqual({ refused: "limited", retryAfter: 3_000 });
  });

  test("that guesses on is looked at one key at a time, with good ones in between", async () => {
    const { secret } = await make();
    let reads = 0;
    let max = 0;
    const counted: Pick<LocalApiKeys, "verify" | "recall" | "remembered"> = {
      remembered: (key) => keys.remembered(key),
      recall: (key) => keys.recall(key),
      async verify(key) {
        max = Math.max(max, ++reads);
        const found = await keys.verify(key);
        reads--;
        return found;
      },
    };
    access = keyAccess(counted, () => time);
    for (let n = 0; n < 20; n++) await authenticate(wrongOf(secret));
    const flood = [...Array(50)].map(() => authenticate(wrongOf(secret)));
    const good = authenticate(secret);
    expect(await good).toMatchObject({ tenant: "acme" });
    expect(new Set((await Promise.all(flood)).map((answer) => "refused" in answer && answer.refused))).toEqual(new Set(["limited"]));
    expect(max).toBe(1);
  });

  test("without a key is not taken for one who guesses", async () => {
    const { secret } = await make();
    for (let n = 0; n < 10; n++) {
      for (const nothing of [undefined, "nonsense"]) expect(await authenticate(nothing)).toEqual({ refused: "unauthenticated" });
    }
    for (const nothing of [undefined, "nonsense"]) expect(await authenticate(nothing)).toEqual({ refused: "limited", retryAfter: 3_000 });
    expect(await authenticate(secret), "not known here yet").toMatchObject({ tenant: "acme" });
  });

  test("is believed by what was last known of the key while the store is away, where that is answered, and nowhere else", async () => {
    const { secret } = await make();
    const { secret: unseen } = await make();
    await authenticate(secret);
    const away = () => Promise.reject(pawlError("store_unreachable", { store: "the store", reason: "away" }));
    const hung = () => new Promise<never>(() => {});
    const metrics = (shown: string) =>
      access.authenticate({ authorization: `Bearer ${shown}`, address: "192.0.2.1", certificate: [], inOutage: true });
    for (const store of [away, hung]) {
      access = keyAccess({ verify: store, recall: store, remembered: (key) => keys.remembered(key) }, () => time);
      expect(await metrics(secret)).toMatchObject({ tenant: "acme" });
    }
    access = keyAccess({ verify: away, recall: away, remembered: (key) => keys.remembered(key) }, () => time);
    await expect(metrics(unseen)).rejects.toMatchObject({ code: "store_unreachable" });
    await expect(metrics(wrongOf(secret))).rejects.toMatchObject({ code: "store_unreachable" });
    await expect(authenticate(secret)).rejects.toMatchObject({ code: "store_unreachable" });
  });
});
