import { apiKeyText, type KeyRing, parseApiKey } from "pawl";
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
    expect(await ask(text), "not known here yet").toEqual({ refused: "limited", retryAfter: 3_000 });
    expect(await ask(text, "192.0.2.2"), "from elsewhere").toMatchObject({ tenant: "acme" });
    expect(await ask(text), "known by now").toMatchObject({ tenant: "acme" });
    time += 3_000;
    expect(await ask(wrongOf(text))).toEqual({ refused: "unauthenticated" });
    expect(await ask(wrongOf(text))).toEqual({ refused: "limited", retryAfter: 3_000 });
  });

  test("without a key is not taken for one who guesses", async () => {
    const { text } = await make();
    for (let n = 0; n < 10; n++) {
      for (const nothing of [undefined, "nonsense"]) expect(await ask(nothing)).toEqual({ refused: "unauthenticated" });
    }
    for (const nothing of [undefined, "nonsense"]) expect(await ask(nothing)).toEqual({ refused: "limited", retryAfter: 3_000 });
    expect(await ask(text), "not known here yet").toMatchObject({ tenant: "acme" });
  });
});
