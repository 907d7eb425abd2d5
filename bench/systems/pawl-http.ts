import type { Session, StoreLocation } from "../contract/system.ts";
import { connectWith, urlOf } from "./pawl.ts";
import { serving } from "./pawl-service.ts";

/** The same interface over HTTP: `pawl serve` in a process of its own, on the same store, and its client here. */
export async function connect(location: StoreLocation): Promise<Session> {
  const service = await serving(urlOf(location));
  const session = await connectWith(location, { url: service.url });
  return {
    ...session,
    async stop() {
      await session.stop();
      await service.stop();
    },
  };
}
