import type { Place } from "../contract/system.ts";

export function postgresAt(place: Place): Place & { readonly kind: "postgres" } {
  if (place.kind !== "postgres") throw new Error(`needs Postgres, got ${place.kind}`);
  return place;
}

export function redisAt(place: Place): Place & { readonly kind: "redis" } {
  if (place.kind !== "redis") throw new Error(`needs Redis, got ${place.kind}`);
  return place;
}
