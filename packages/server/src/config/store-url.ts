import { InvalidSetting } from "./kinds.js";

export interface StoreTls {
  readonly tls?: "verify" | "off" | undefined;
  /** path of the certificates to verify with */
  readonly ca?: string | undefined;
}

/** Modes in which the driver would talk to whoever answers. */
const UNVERIFIED_MODES = new Set(["disable", "allow", "prefer", "no-verify", "false", "0"]);

/**
 * The URL as it is opened: verified TLS, unless the server is on this machine or somebody said otherwise. All of it stands
 * in the URL, so that every connection made of it is made alike.
 */
export function withTls(url: string, { tls, ca }: StoreTls): string {
  const { host, query, rest } = parseStoreUrl(url);
  const mode = query.get("sslmode") ?? query.get("ssl") ?? undefined;
  const isLocal = isLocalHost(host);
  if (tls === "off") return withQuery(rest, query, { sslmode: isLocal ? mode : "disable" });
  if (isLocal && tls === undefined && ca === undefined) return url;
  if ((mode !== undefined && UNVERIFIED_MODES.has(mode)) || query.has("uselibpqcompat")) {
    throw new InvalidSetting(
      `its URL asks for a connection to ${host} that verifies nobody`,
      "leave ssl and sslmode out of it, or say --store-tls off",
    );
  }
  return withQuery(rest, query, { sslmode: "verify-full", sslrootcert: ca ?? query.get("sslrootcert") ?? undefined });
}

/** A host that only this machine reaches. */
export function isLocalHost(host: string): boolean {
  return host === "" || host.startsWith("/") || isLoopback(host);
}

export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}

/** Not by `URL`, which knows no host that is a folder, nor one that is left out. */
function parseStoreUrl(url: string): { host: string; query: URLSearchParams; rest: string } {
  const queryStart = url.indexOf("?");
  const rest = queryStart === -1 ? url : url.slice(0, queryStart);
  const query = new URLSearchParams(queryStart === -1 ? "" : url.slice(queryStart + 1));
  const [, authority = ""] = /^\w+:\/\/([^/]*)/.exec(rest) ?? [];
  const hostPart = authority.slice(authority.lastIndexOf("@") + 1).replace(/^\[(.*)\](:\d+)?$/, "$1");
  const host = query.get("host") ?? decodeURIComponent(hostPart.includes("::") ? hostPart : hostPart.replace(/:\d+$/, ""));
  return { host, query, rest };
}

function withQuery(rest: string, query: URLSearchParams, changes: Readonly<Record<string, string | undefined>>): string {
  const next = new URLSearchParams(query);
  for (const name of ["ssl", "sslmode"]) next.delete(name);
  for (const [name, value] of Object.entries(changes)) if (value !== undefined) next.set(name, value);
  const text = next.toString();
  return text === "" ? rest : `${rest}?${text}`;
}
