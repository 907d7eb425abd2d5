import type { Place, Session } from "../contract/system.ts";
import { connectWith, urlOf } from "./pawl.ts";
import { serving } from "./serving.ts";

/** The same interface over HTTP: `pawl serve` in a process of its own, on the same store, and its client here. */
export async function connect(place: Place): Promise<Session> {
  const service = await serving(urlOf(place));
  const session = await connectWith(place, { url: service.url });
  return {
    ...session,
    async stop() {
      await session.stop();
      await service.stop();
    },
  };
}
