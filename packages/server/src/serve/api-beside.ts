import type { Pawl } from "pawl";
import { DEFAULT_PORT } from "../config/settings.js";
import { Front } from "./front.js";
import { apiRouting } from "./routing.js";

export interface ApiBeside {
  readonly address: string;
  close(): Promise<void>;
}

const HOST = "127.0.0.1";
const ANY = 0;

/** The API of a store that is open already, for this machine alone: at the usual port, or at any where that is taken. */
export async function apiBeside(pawl: Pawl): Promise<ApiBeside> {
  const routing = await apiRouting({ pawl, audit: pawl.audit, replies: pawl.replies });
  const front = new Front();
  const address = await front.listen({ host: HOST, port: DEFAULT_PORT }).catch(() => front.listen({ host: HOST, port: ANY }));
  front.handOver(routing.handler);
  return {
    address,
    async close() {
      await Promise.all([front.close(AbortSignal.timeout(1_000)), routing.close()]);
    },
  };
}
