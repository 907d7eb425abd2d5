import type { StoreLocation } from "../contract/system.ts";

export function postgresAt(location: StoreLocation): StoreLocation & { readonly kind: "postgres" } {
  if (location.kind !== "postgres") throw new Error(`needs Postgres, got ${location.kind}`);
  return location;
}

export function redisAt(location: StoreLocation): StoreLocation & { readonly kind: "redis" } {
  if (location.kind !== "redis") throw new Error(`needs Redis, got ${location.kind}`);
  return location;
}
