import { isIP } from "node:net";
import type { Networks } from "../../net/network.js";

/**
 * Where a request comes from. `X-Forwarded-For` is what anybody may write: it is read from its end, as long as who added to
 * it is a proxy of ours, and the first address that is none of ours is the caller's. What is no address ends it.
 */
export function clientAddress(peer: string, forwarded: string | readonly string[] | undefined, trusted: Networks | undefined): string {
  let address = peer;
  if (trusted === undefined || forwarded === undefined) return address;
  const hops = (typeof forwarded === "string" ? forwarded : forwarded.join(",")).split(",");
  while (trusted.has(address)) {
    const hop = hops.pop();
    const before = hop === undefined ? undefined : addressIn(hop);
    if (before === undefined) break;
    address = before;
  }
  return address;
}

/** Some proxies write the port too. */
function addressIn(hop: string): string | undefined {
  const text = hop.trim();
  const [, bracketed, plain] = /^(?:\[([^\]]+)\](?::\d+)?|([\d.]+):\d+)$/.exec(text) ?? [];
  const address = bracketed ?? plain ?? text;
  return isIP(address) === 0 ? undefined : address;
}
