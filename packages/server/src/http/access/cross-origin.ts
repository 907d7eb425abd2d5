import type { IncomingHttpHeaders } from "node:http";

const LOOPBACK_HOST = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?$/i;

/**
 * Why a request to loopback may come from elsewhere; undefined: it does not. Any page that a browser here has open reaches
 * loopback too: by a name of its own that leads there, which `Host` tells, or by sending what it gets no answer to, which
 * `Origin` tells.
 */
export function crossOriginReason(method: string, { host = "", origin, "sec-fetch-site": site }: IncomingHttpHeaders): string | undefined {
  if (!LOOPBACK_HOST.test(host)) return "its Host is another";
  // A page cannot see what it gets: no answer lets other origins in.
  if (method === "GET") return undefined;
  const own = origin === undefined || origin.toLowerCase().replace(/^https?:\/\//, "") === host.toLowerCase();
  return own && site !== "cross-site" ? undefined : "its Origin is another";
}
