import { describe, expect, test } from "vitest";
import { checkTrace, isSampled, traceOfHeaders } from "./trace.js";

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

describe("a trace context", () => {
  test.each([
    [{ traceparent }],
    [{ traceparent, tracestate: "vendor=x" }],
    [{ traceparent: traceparent.replace(/^00/, "cc") }],
    [{ traceparent: traceparent.replace(/01$/, "00") }],
  ])("is kept as it is: %o", (given) => {
    expect(checkTrace("trace", given)).toEqual(given);
  });

  test.each([
    ["no parent", {}, /trace\.traceparent/],
    ["a parent in capitals", { traceparent: traceparent.toUpperCase() }, /W3C/],
    ["a parent of two lines", { traceparent: `${traceparent}\n` }, /W3C/],
    ["a trace of zeros", { traceparent: `00-${"0".repeat(32)}-b7ad6b7169203331-01` }, /W3C/],
    ["a span of zeros", { traceparent: `00-0af7651916cd43dd8448eb211c80319c-${"0".repeat(16)}-01` }, /W3C/],
    ["the version that never will be", { traceparent: traceparent.replace(/^00/, "ff") }, /W3C/],
    ["no state", { traceparent, tracestate: "" }, /trace\.tracestate/],
    ["a state of two headers", { traceparent, tracestate: "a=1\r\nx-evil: 1" }, /trace\.tracestate/],
    ["a state too long", { traceparent, tracestate: "a".repeat(513) }, /trace\.tracestate/],
    ["another word", { traceparent, tracestat: "a=1" }, /did you mean tracestate\?/],
    ["a text", traceparent, /not an object/],
  ])("is refused with %s", (_, given, says) => {
    expect(() => checkTrace("trace", given)).toThrow(says);
  });
});

describe("the trace of a request", () => {
  test.each([
    ["its headers", { traceparent, tracestate: "vendor=x" }, { traceparent, tracestate: "vendor=x" }],
    ["its parent alone, where the state is not as it should be", { traceparent, tracestate: "\u0000" }, { traceparent }],
    ["none, where the parent is not as it should be", { traceparent: "00-1-2-01" }, undefined],
    ["none, where there are two parents", { traceparent: [traceparent, traceparent] }, undefined],
    ["none, where there is no header", {}, undefined],
  ])("is that of %s", (_, headers, trace) => {
    expect(traceOfHeaders(headers)).toEqual(trace);
  });

  test("is recorded by whoever began it if its last bit says so", () => {
    const sampled = ["00", "01", "02", "03"].map((flags) => isSampled({ traceparent: traceparent.replace(/01$/, flags) }));
    expect(sampled).toEqual([false, true, false, true]);
  });
});
