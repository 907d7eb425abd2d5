import { type LookupAddress, lookup as systemLookup } from "node:dns";
import { BlockList, isIP, type LookupFunction } from "node:net";
import { Networks, networkOf } from "../net/network.js";

/**
 * Addresses that a target must not have: this machine, the networks around it, and what else is not the public internet.
 * Looked at where a connection is made, of every address that a name resolves to: a name that was harmless when it was
 * registered may be something else now.
 */
const PRIVATE_IPV4 = new BlockList();
for (const [network, prefix] of [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
] as const)
  PRIVATE_IPV4.addSubnet(network, prefix, "ipv4");
/** Of IPv6 only what is handed out as public is public. */
const PUBLIC_IPV6 = new BlockList();
PUBLIC_IPV6.addSubnet("2000::", 3, "ipv6");
const PRIVATE_IPV6 = new BlockList();
for (const [network, prefix] of [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
] as const)
  PRIVATE_IPV6.addSubnet(network, prefix, "ipv6");

/** Networks of one's own that targets may be in all the same: `10.1.0.0/16`. */
export function parseNetworks(networks: readonly string[]): Networks {
  return new Networks(
    networks.map((text) => {
      const network = networkOf(text);
      if (network === undefined) throw new Error(`${text} is not a network such as 10.1.0.0/16`);
      return network;
    }),
  );
}

export const NO_NETWORKS = new Networks([]);

export function isSafe(address: string, allowed: Networks = NO_NETWORKS): boolean {
  const family = isIP(address);
  if (family === 4) return allowed.has(address) || !PRIVATE_IPV4.check(address, "ipv4");
  if (family !== 6) return false;
  return allowed.has(address) || (PUBLIC_IPV6.check(address, "ipv6") && !PRIVATE_IPV6.check(address, "ipv6"));
}

export type Resolve = (host: string) => Promise<readonly LookupAddress[]>;

export const systemResolve: Resolve = (host) =>
  new Promise((resolve, reject) =>
    systemLookup(host, { all: true, verbatim: true }, (error, addresses) => (error === null ? resolve(addresses) : reject(error))),
  );

export class UnsafeTarget extends Error {
  override readonly name = "UnsafeTarget";
}

/**
 * A lookup that answers only if every address of the name is safe, and with those very addresses: what is connected to is
 * what was looked at, so there is no second answer in between.
 */
export function safeLookup(resolve: Resolve, allowed: Networks): LookupFunction {
  return (host, options, done) => {
    resolve(host).then(
      (addresses) => {
        const bad = addresses.find(({ address }) => !isSafe(address, allowed));
        const [first] = addresses;
        if (bad !== undefined || first === undefined) done(new UnsafeTarget(`${host} is at no address that jobs may be pushed to`), "", 0);
        else if (options.all === true) done(null, [...addresses]);
        else done(null, first.address, first.family);
      },
      (error: NodeJS.ErrnoException) => done(error, "", 0),
    );
  };
}
