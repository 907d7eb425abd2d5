import { describe, expect, test } from "vitest";
import { type Network, Networks, networkOf } from "../../net/network.js";
import { clientAddress } from "./client-address.js";

const networks = (...texts: string[]) => new Networks(texts.map((text) => networkOf(text) as Network));
const ours = networks("10.0.0.0/8", "fd00::/8");

describe("the address of a caller", () => {
  test.each([
    ["the other end of the connection, where no proxy is trusted", "10.0.0.1", "192.0.2.7", undefined, "10.0.0.1"],
    ["the other end, if that is no proxy of ours, whatever it says", "198.51.100.9", "192.0.2.7", ours, "198.51.100.9"],
    ["what our proxy saw", "10.0.0.1", "192.0.2.7", ours, "192.0.2.7"],
    ["what our proxy saw, not what its caller wrote before", "10.0.0.1", "203.0.113.1, 10.9.9.9, 192.0.2.7", ours, "192.0.2.7"],
    ["what the outermost of our proxies saw", "10.0.0.1", "203.0.113.1, 192.0.2.7, 10.0.0.2, fd00::2", ours, "192.0.2.7"],
    ["the proxy itself, if it says nothing", "10.0.0.1", undefined, ours, "10.0.0.1"],
    ["the last that is an address, if the rest is none", "10.0.0.1", "192.0.2.7, nonsense, 10.0.0.2", ours, "10.0.0.2"],
    ["a machine of ours, if nobody else was asked through", "10.0.0.1", "10.0.0.3", ours, "10.0.0.3"],
    ["one written with its port", "10.0.0.1", "192.0.2.7:4711", ours, "192.0.2.7"],
    ["one of IPv6 with its port", "10.0.0.1", "[2001:db8::7]:4711", ours, "2001:db8::7"],
    ["seen through a proxy that shows as IPv6", "::ffff:10.0.0.1", "192.0.2.7", ours, "192.0.2.7"],
  ])("is %s", (_, peer, forwarded, trusted, address) => {
    expect(clientAddress(peer, forwarded, trusted)).toBe(address);
  });

  test("is read of several headers as of one", () => {
    expect(clientAddress("10.0.0.1", ["203.0.113.1", "192.0.2.7"], ours)).toBe("192.0.2.7");
  });
});

describe("a network", () => {
  test.each(["", "10.0.0.0/33", "10.0.0/8", "fd00::/129", "10.0.0.0/-1", "10.0.0.0/", "example.com", "fe80::1%eth0"])("is not %j", (text) => {
    expect(networkOf(text)).toBeUndefined();
  });

  test("of one address holds that alone", () => {
    expect(networks("10.0.0.1").has("10.0.0.1")).toBe(true);
    expect(networks("10.0.0.1").has("10.0.0.2")).toBe(false);
    expect(networks("10.0.0.1").has("nonsense")).toBe(false);
  });
});
