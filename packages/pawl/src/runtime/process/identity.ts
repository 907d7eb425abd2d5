import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import type { InstanceId } from "../../core/jobs/id.js";

/** Names are for people and may repeat (three processes on one host); the instance id never does. */
export function newInstanceId(): InstanceId {
  return randomUUID() as InstanceId;
}

/** What tells one request, one entry, one call from all others. */
export function newToken(): string {
  return randomUUID();
}

/** A short one, where it is part of what people see. */
export function newEpoch(): string {
  return randomUUID().replaceAll("-", "").slice(0, 12);
}

export function defaultName(): string {
  return `${hostname()}-${process.pid}`.slice(0, 128);
}
