import type { IncomingMessage } from "node:http";

/** Headers that something is decided by. Of two Node takes one, and whoever stands before it may have taken the other. */
const SINGLE_HEADERS: ReadonlySet<string> = new Set(["host", "authorization", "origin", "sec-fetch-site", "content-type", "idempotency-key"]);
/** What names, addresses and ports are made of. Two of them with a comma between are what a proxy makes of two headers. */
const HOST_SYNTAX = /^[\w.~!$&'()*+;=%:[\]-]*$/;
/** C0 and DEL, as UTF-8 also C1. Unescaped ones are no HTTP, and never come this far. */
const ENCODED_CONTROLS = /%(?:[01][0-9a-f]|7f|c2%[89][0-9a-f])/i;

/**
 * What a request cannot be served for, whatever it asks: its head can be read in two ways, or it names what no name holds.
 * Proxies, filters and logs before this must not have seen another request than the one that is answered.
 */
export function ambiguityReason(request: Pick<IncomingMessage, "url" | "headers" | "rawHeaders" | "httpVersion">): string | undefined {
  const { url = "", headers, rawHeaders, httpVersion } = request;
  const seen = new Set<string>();
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] as string).toLowerCase();
    if (!SINGLE_HEADERS.has(name)) continue;
    if (seen.has(name)) return `it has two headers ${name}`;
    seen.add(name);
  }
  const { host } = headers;
  if (host === undefined && httpVersion === "1.1") return "it has no header host";
  if (host !== undefined && !HOST_SYNTAX.test(host)) return "its header host is no name of a host";
  if (!url.startsWith("/") && url !== "*") {
    const authority = /^https?:\/\/([^/?#]*)/i.exec(url)?.[1];
    if (authority === undefined || authority.toLowerCase() !== host?.toLowerCase()) return "its target is at another host than its header host says";
  }
  return ENCODED_CONTROLS.test(url.split("?")[0] as string) ? "its path has a control character" : undefined;
}
