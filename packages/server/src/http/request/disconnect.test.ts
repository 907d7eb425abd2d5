import { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";
import { expect, test, vi } from "vitest";
import { abortedOnDisconnect, stopController } from "./disconnect.js";

function response(state: { readonly destroyed?: boolean; readonly writableFinished?: boolean } = {}): ServerResponse {
  return Object.assign(new EventEmitter(), { destroyed: false, writableFinished: false, socket: null, ...state }) as unknown as ServerResponse;
}

test("a wait ends when its caller hangs up, and when the service stops", () => {
  const stopping = new AbortController();
  const [left, stays] = [response(), response()];
  const [one, two] = [abortedOnDisconnect(left, stopping.signal), abortedOnDisconnect(stays, stopping.signal)];
  left.emit("close");
  expect([one.aborted, two.aborted]).toEqual([true, false]);
  stopping.abort("enough");
  expect(two.reason).toBe("enough");
  expect(abortedOnDisconnect(response(), stopping.signal).aborted, "one that comes too late").toBe(true);
});

test("a caller that has gone before the wait begins is not waited for", () => {
  expect(abortedOnDisconnect(response({ destroyed: true }), new AbortController().signal).aborted).toBe(true);
});

test("an answered wait leaves nothing behind with the service, and is not aborted", () => {
  const { signal } = new AbortController();
  const removed = vi.spyOn(signal, "removeEventListener");
  const added = vi.spyOn(signal, "addEventListener");
  const answered = response({ writableFinished: true });
  const wait = abortedOnDisconnect(answered, signal);
  answered.emit("close");
  expect(wait.aborted).toBe(false);
  expect(added).toHaveBeenCalledOnce();
  expect(removed).toHaveBeenCalledWith("abort", added.mock.calls[0]?.[1]);
});

test("any number of callers wait, and Node does not warn of a leak", () => {
  const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  const stopping = stopController();
  const waits = Array.from({ length: 200 }, () => abortedOnDisconnect(response(), stopping.signal));
  stopping.abort("enough");
  expect(waits.every(({ reason }) => reason === "enough")).toBe(true);
  expect(warned).not.toHaveBeenCalled();
  warned.mockRestore();
});
