import { isIP } from "node:net";
import type { Networks } from "../net/network.js";
import { isSafe, NO_NETWORKS, type Resolve, UnsafeTarget } from "./safe-address.js";

const ALLOWED_PORTS: ReadonlySet<string> = new Set(["", "443", "80", "8443"]);

export interface TargetRules {
  readonly allowed?: Networks;
  /** whether plain http:// and any port are taken: for tests and for networks of one's own */
  readonly plain?: boolean;
  readonly resolve?: Resolve;
}

/** What can be seen of a target's URL alone. Where its name leads is looked at with every connection: see `safeLookup`. */
export function checkTarget(target: string, { allowed = NO_NETWORKS, plain = false }: TargetRules = {}): URL {
  if (!URL.canParse(target)) throw new UnsafeTarget(`${JSON.stringify(target.slice(0, 200))} is not a URL`);
  const url = new URL(target);
  if (url.protocol !== "https:" && !(plain && url.protocol === "http:")) throw new UnsafeTarget("a target is an https:// URL");
  if (url.username !== "" || url.password !== "") throw new UnsafeTarget("a target has no user and no password in its URL: it is signed");
  if (!plain && !ALLOWED_PORTS.has(url.port)) throw new UnsafeTarget("a target is at port 443, 80 or 8443");
  const host = hostOf(url);
  // A URL writes 0x7f.1 and 2130706433 as the address they are, so there is one form to look at.
  if (isIP(host) !== 0 ? !isSafe(host, allowed) : isLocalName(host)) throw new UnsafeTarget(`${host} is at no address that jobs may be pushed to`);
  return url;
}

export function hostOf(url: URL): string {
  return url.hostname
    .replace(/^\[(.*)\]$/, "$1")
    .replace(/\.$/, "")
    .toLowerCase();
}

function isLocalName(host: string): boolean {
  return host === "localhost" || host.endsWith(".localhost") || host.endsWith(".local") || host.endsWith(".internal") || !host.includes(".");
}
