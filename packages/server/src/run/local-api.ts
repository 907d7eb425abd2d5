import type { Pawl } from "pawl";
import { serviceOf } from "pawl/service";
import { DEFAULT_PORT } from "../config/settings.js";
import { HttpListener } from "./listener.js";
import { apiRouter } from "./router.js";

export interface LocalApi {
  readonly address: string;
  close(): Promise<void>;
}

const HOST = "127.0.0.1";
const ANY_PORT = 0;

/** The API of a store that is open already, for this machine alone: at the usual port, or at any where that is taken. */
export async function openLocalApi(pawl: Pawl): Promise<LocalApi> {
  const router = await apiRouter({ pawl, audit: serviceOf(pawl).audit, replies: serviceOf(pawl).idempotency });
  const listener = new HttpListener();
  const address = await listener.listen({ host: HOST, port: DEFAULT_PORT }).catch(() => listener.listen({ host: HOST, port: ANY_PORT }));
  listener.setHandler(router.handler);
  return {
    address,
    async close() {
      await Promise.all([listener.close(AbortSignal.timeout(1_000)), router.close()]);
    },
  };
}
