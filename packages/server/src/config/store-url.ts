import { Unfit } from "./kinds.js";

export interface StoreTls {
  readonly tls?: "verify" | "off" | undefined;
  /** path of the certificates to verify with */
  readonly ca?: string | undefined;
}

/** Modes in which the driver would talk to whoever answers. */
const UNVERIFIED = new Set(["disable", "allow", "prefer", "no-verify", "false", "0"]);

/**
 * The URL as it is opened: verified TLS, unless the server is on this machine or somebody said otherwise. All of it stands
 * in the URL, so that every connection made of it is made alike.
 */
export function withTls(url: string, { tls, ca }: StoreTls): string {
  const { host, query, rest } = partsOf(url);
  const mode = query.get("sslmode") ?? query.get("ssl") ?? undefined;
  const near = isNear(host);
  if (tls === "off") return put(rest, query, { sslmode: near ? mode : "disable" });
  if (near && tls === undefined && ca === undefined) return url;
  if ((mode !== undefined && UNVERIFIED.has(mode)) || query.has("uselibpqcompat")) {
    throw new Unfit(`its URL asks for a connection to ${host} that verifies nobody`, "leave ssl and sslmode out of it, or say --store-tls off");
  }
  return put(rest, query, { sslmode: "verify-full", sslrootcert: ca ?? query.get("sslrootcert") ?? undefined });
}

/** A host that only this machine reaches. */
export function isNear(host: string): boolean {
  return host === "" || host.startsWith("/") || isLoopback(host);
}

export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}

/** Not by `URL`, which knows no host that is a folder, nor one that is left out. */
function partsOf(url: string): { host: string; query: URLSearchParams; rest: string } {
  const cut = url.indexOf("?");
  const rest = cut === -1 ? url : url.slice(0, cut);
  const query = new URLSearchParams(cut === -1 ? "" : url.slice(cut + 1));
  const [, authority = ""] = /^\w+:\/\/([^/]*)/.exec(rest) ?? [];
  const named = authority.slice(authority.lastIndexOf("@") + 1).replace(/^\[(.*)\](:\d+)?$/, "$1");
  const host = query.get("host") ?? decodeURIComponent(named.includes("::") ? named : named.replace(/:\d+$/, ""));
  return { host, query, rest };
}

function put(rest: string, query: URLSearchParams, changes: Readonly<Record<string, string | undefined>>): string {
  const next = new URLSearchParams(query);
  for (const name of ["ssl", "sslmode"]) next.delete(name);
  for (const [name, value] of Object.entries(changes)) if (value !== undefined) next.set(name, value);
  const text = next.toString();
  return text === "" ? rest : `${rest}?${text}`;
}
