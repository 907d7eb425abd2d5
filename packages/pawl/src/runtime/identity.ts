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

/** A short one, where it is part of what people see. */
export function newMark(): string {
  return randomUUID().replaceAll("-", "").slice(0, 12);
}

export function defaultName(): string {
  return `${hostname()}-${process.pid}`.slice(0, 128);
}
