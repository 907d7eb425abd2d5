import type { Duplex } from "node:stream";
import type pg from "pg";

const PATIENCE_MS = 1_000;

/** Says goodbye, and hangs up if nobody answers: a connection whose other side is gone must not hold up an exit. */
export async function hangUp(client: pg.ClientBase): Promise<void> {
  const { connection } = client as unknown as { readonly connection: { readonly stream: Duplex } };
  const { stream } = connection;
  if (stream.destroyed) return;
  const timer = setTimeout(() => stream.destroy(), PATIENCE_MS);
  const closed = new Promise<void>((resolve) => stream.once("close", resolve));
  await Promise.race([(client as pg.Client).end(), closed]).catch(() => {});
  await closed;
  clearTimeout(timer);
}
