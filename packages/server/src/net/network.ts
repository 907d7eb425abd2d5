import { BlockList, isIP } from "node:net";

/** One network of addresses: `10.1.0.0/16`, `2001:db8::/32`, or one address by itself. */
export interface Network {
  readonly address: string;
  readonly prefix: number;
  readonly family: "ipv4" | "ipv6";
}

/** Undefined for what is no network. */
export function networkOf(text: string): Network | undefined {
  const [, address = "", digits] = /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const version = isIP(address);
  if (version === 0) return undefined;
  const widest = version === 4 ? 32 : 128;
  const prefix = digits === undefined ? widest : Number(digits);
  return prefix > widest ? undefined : { address, prefix, family: version === 4 ? "ipv4" : "ipv6" };
}

/** Some networks, and whether an address is in one of them. */
export class Networks {
  readonly #list = new BlockList();

  constructor(networks: readonly Network[]) {
    for (const { address, prefix, family } of networks) this.#list.addSubnet(address, prefix, family);
  }

  /** Also of an IPv4 address that is written as IPv6. */
  has(address: string): boolean {
    const version = isIP(address);
    return version !== 0 && this.#list.check(address, version === 4 ? "ipv4" : "ipv6");
  }
}
