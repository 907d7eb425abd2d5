import { type AnyTask, type OpenOptions, open, type Pawl } from "pawl";
import { afterEach, describe } from "vitest";
import { createApp } from "../../packages/server/src/http/app.js";

/** A pawl and, if it is a remote one, the store behind its service. */
export interface OpenedPawl {
  readonly pawl: Pawl;
  readonly store: Pawl;
}

const closing: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function openLocal(options: OpenOptions): Promise<OpenedPawl> {
  const pawl = await open("memory:", options);
  closing.push(() => pawl.close());
  return { pawl, store: pawl };
}

/** The service does not know the code of the tasks: their workers are elsewhere. */
async function openRemote(options: OpenOptions): Promise<OpenedPawl> {
  const { url, store } = await service();
  const pawl = await open(url, options);
  closing.push(() => pawl.close());
  return { pawl, store };
}

/** A service on a store in memory, on a port of its own. */
export async function service(options: OpenOptions = {}): Promise<{ readonly url: string; readonly store: Pawl }> {
  const store = await open("memory:", options);
  const app = createApp({ pawl: store });
  closing.push(async () => {
    await app.close();
    await store.close();
  });
  return { url: await app.listen({ host: "127.0.0.1", port: 0 }), store };
}

export const PAWL_KINDS = [
  { way: "in this process", open: openLocal },
  { way: "through a service", open: openRemote },
] as const;

/** One suite for a pawl on its own store and for one through a service. */
export function describeBoth(
  name: string,
  suite: (opening: (tasks?: readonly AnyTask[], options?: OpenOptions) => Promise<OpenedPawl>, way: string) => void,
): void {
  describe.each(PAWL_KINDS)(`${name}, $way`, ({ open: opening, way }) => {
    suite((tasks, options = {}) => opening({ ...(tasks === undefined ? {} : { tasks }), ...options }), way);
  });
}
