import { apiKeyText, type KeyRing, parseApiKey, pawlError } from "pawl";
import { openTest, type TestPawl } from "pawl/testing";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Access } from "../http/access.js";
import { keyAccess } from "./key-access.js";

let world: TestPawl;
let keys: KeyRing;
let access: Access;
let time = 0;

beforeEach(async () => {
  world = await openTest({ work: false, maintenance: false, keys: { pepper: "a pepper of sixteen bytes or more" } });
  keys = world.pawl.keys;
  time = 0;
  access = keyAccess(keys, () => time);
});
afterEach(() => world.close());

const make = () => keys.create({ name: "ci", tenant: "acme", grants: [{ role: "viewer" }] });
const ask = (text: string | undefined, address = "192.0.2.1") =>
  access.authenticate({ authorization: text === undefined ? undefined : `Bearer ${text}`, address, certificate: [] });
const wrongOf = (text: string) => apiKeyText({ ...(parseApiKey(text) as NonNullable<ReturnType<typeof parseApiKey>>), secret: "0".repeat(43) });

describe("a caller with an API key", () => {
  test("is who the key says", async () => {
    const { key, text } = await make();
    expect(await ask(text)).toEqual({ name: `key:${key.id}`, tenant: "acme", grants: [{ role: "viewer" }] });
    expect(await access.authenticate({ authorization: `bearer ${text}`, address: "", certificate: [] })).toMatchObject({ tenant: "acme" });
  });

  test("learns nothing of why a key is not good", async () => {
    const { key, text } = await make();
    const wrong = wrongOf(text);
    const answers = [await ask(undefined), await ask("nonsense"), await ask(wrong), await ask("")];
    await keys.revoke(key.id);
    answers.push(await ask(text));
    answers.push(await access.authenticate({ authorization: `Basic ${text}`, address: "", certificate: [] }));
    for (const answer of answers) expect(answer).toEqual({ refused: "unauthenticated" });
  });

  test("that is wrong more than 20 times a minute is told to wait, and the key itself is locked for nobody (S6)", async () => {
    const { text } = await make();
    for (let n = 0; n < 20; n++) expect(await ask(wrongOf(text))).toEqual({ refused: "unauthenticated" });
    expect(await ask(wrongOf(text))).toEqual({ refused: "limited", retryAfter: 3_000 });
    expect(await ask(text), "not known here yet").toMatchObject({ tenant: "acme" });
    expect(await ask(wrongOf(text)), "nor forgiven by it").toEqual({ refused: "limited", retryAfter: 3_000 });
    expect(await ask(text), "known by now").toMatchObject({ tenant: "acme" });
    time += 3_000;
    expect(await ask(wrongOf(text))).toEqual({ refused: "unauthenticated" });
    expect(await ask(wrongOf(text))).toEqual({ refused: "limited", retryAfter: 3_000 });
  });

  test("that guesses on is looked at one key at a time, with good ones in between", async () => {
    const { text } = await make();
    let looks = 0;
    let most = 0;
    const counted: Pick<KeyRing, "verify" | "recall" | "remembered"> = {
      remembered: (key) => keys.remembered(key),
      recall: (key) => keys.recall(key),
      async verify(key) {
        most = Math.max(most, ++looks);
        const found = await keys.verify(key);
        looks--;
        return found;
      },
    };
    access = keyAccess(counted, () => time);
    for (let n = 0; n < 20; n++) await ask(wrongOf(text));
    const flood = [...Array(50)].map(() => ask(wrongOf(text)));
    const good = ask(text);
    expect(await good).toMatchObject({ tenant: "acme" });
    expect(new Set((await Promise.all(flood)).map((answer) => "refused" in answer && answer.refused))).toEqual(new Set(["limited"]));
    expect(most).toBe(1);
  });

  test("without a key is not taken for one who guesses", async () => {
    const { text } = await make();
    for (let n = 0; n < 10; n++) {
      for (const nothing of [undefined, "nonsense"]) expect(await ask(nothing)).toEqual({ refused: "unauthenticated" });
    }
    for (const nothing of [undefined, "nonsense"]) expect(await ask(nothing)).toEqual({ refused: "limited", retryAfter: 3_000 });
    expect(await ask(text), "not known here yet").toMatchObject({ tenant: "acme" });
  });

  test("is believed by what was last known of the key while the store is away, where that is answered, and nowhere else", async () => {
    const { text } = await make();
    const { text: unseen } = await make();
    await ask(text);
    const away = () => Promise.reject(pawlError("store_unreachable", { store: "the store", reason: "away" }));
    const hung = () => new Promise<never>(() => {});
    const metrics = (shown: string) =>
      access.authenticate({ authorization: `Bearer ${shown}`, address: "192.0.2.1", certificate: [], inOutage: true });
    for (const store of [away, hung]) {
      access = keyAccess({ verify: store, recall: store, remembered: (key) => keys.remembered(key) }, () => time);
      expect(await metrics(text)).toMatchObject({ tenant: "acme" });
    }
    access = keyAccess({ verify: away, recall: away, remembered: (key) => keys.remembered(key) }, () => time);
    await expect(metrics(unseen)).rejects.toMatchObject({ code: "store_unreachable" });
    await expect(metrics(wrongOf(text))).rejects.toMatchObject({ code: "store_unreachable" });
    await expect(ask(text)).rejects.toMatchObject({ code: "store_unreachable" });
  });
});
