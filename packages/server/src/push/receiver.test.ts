import { describe, expect, test } from "vitest";
import { receiver } from "./receiver.js";
import { secretBytes, signature } from "./signature.js";

const SECRET = `whsec_${Buffer.alloc(32, 1).toString("base64")}`;
const OTHER = `whsec_${Buffer.alloc(32, 2).toString("base64")}`;
const NOW = 1_700_000_000;

const signed = (body: string, { id = "job", at = NOW, secret = SECRET } = {}) => ({
  "webhook-id": id,
  "webhook-timestamp": String(at),
  "webhook-signature": signature([secretBytes(secret)], id, at, body),
});
const atNow = (secret: string | readonly string[] = SECRET) => receiver({ secret, now: () => NOW * 1_000 });

describe("a receiver of what is pushed (S45)", () => {
  test("believes what is signed with its secret, as text and as bytes", () => {
    const { receive } = atNow();
    expect(receive(signed("{}"), "{}")).toEqual({ ok: true, id: "job" });
    expect(receive(signed('{"é":1}', { id: "another" }), Buffer.from('{"é":1}'))).toEqual({ ok: true, id: "another" });
  });

  test("believes either of two secrets while one takes the place of the other", () => {
    const { receive } = atNow([OTHER, SECRET]);
    expect(receive(signed("{}"), "{}")).toMatchObject({ ok: true });
    expect(receive(signed("{}", { id: "new", secret: OTHER }), "{}")).toMatchObject({ ok: true });
  });

  test.each([
    ["another body", signed("{}"), "{ }"],
    ["another secret", signed("{}", { secret: OTHER }), "{}"],
    ["another id", { ...signed("{}"), "webhook-id": "other" }, "{}"],
    ["no headers", {}, "{}"],
    ["two signatures headers", { ...signed("{}"), "webhook-signature": ["v1,a", "v1,b"] }, "{}"],
    ["a time too long ago", signed("{}", { at: NOW - 301 }), "{}"],
    ["a time too far ahead", signed("{}", { at: NOW + 301 }), "{}"],
    ["no time", { ...signed("{}"), "webhook-timestamp": "soon" }, "{}"],
  ])("does not believe %s", (_, headers, body) => {
    expect(atNow().receive(headers, body)).toEqual({ ok: false, why: "unsigned" });
  });

  test("takes one delivery once, and the next attempt of its job as another", () => {
    const { receive } = atNow();
    expect(receive(signed("{}"), "{}")).toMatchObject({ ok: true });
    expect(receive(signed("{}"), "{}")).toEqual({ ok: false, why: "replayed" });
    expect(receive(signed("{}", { at: NOW + 1 }), "{}")).toMatchObject({ ok: true });
  });
});
