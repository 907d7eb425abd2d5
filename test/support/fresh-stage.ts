import type { OpenOptions } from "../../packages/pawl/src/index.js";
import { Wire } from "./proxy.js";
import { migratedDatabase, type ServerName, serverFor } from "./servers.js";
import { Stage } from "./stage.js";

/** A stage on a database of its own. */
export async function freshStage(on: ServerName = "embedded18", open?: OpenOptions): Promise<Stage> {
  const database = await migratedDatabase(on);
  const { url, directUrl } = database;
  const stage = await Stage.open({ url, directUrl, ...(open === undefined ? {} : { open }) });
  stage.atEnd(() => database.drop());
  return stage;
}

/** The same, reached through a proxy that can break: `stage.url` leads through it, the test's own evidence does not. */
export async function proxiedStage(open?: OpenOptions): Promise<{ readonly stage: Stage; readonly proxy: Wire } & AsyncDisposable> {
  const probe = serverFor("embedded18");
  if (!probe.available) throw new Error(probe.reason);
  const database = await migratedDatabase("embedded18");
  const proxy = await Wire.before(probe.server.direct);
  const stage = await Stage.open({ url: proxy.url(database.name), directUrl: database.directUrl, ...(open === undefined ? {} : { open }) });
  stage.atEnd(() => database.drop());
  stage.atEnd(() => proxy.close());
  return { stage, proxy, [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() };
}
