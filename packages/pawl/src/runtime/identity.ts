import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import type { BootId } from "../core/id.js";

/** Names are for people and may repeat (three processes on one host); the boot id never does. */
export function newBootId(): BootId {
  return randomUUID() as BootId;
}

/** What tells one request, one entry, one call from all others. */
export function newToken(): string {
  return randomUUID();
}

export function defaultName(): string {
  return `${hostname()}-${process.pid}`.slice(0, 128);
}
