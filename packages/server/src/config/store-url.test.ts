import { describe, expect, test } from "vitest";
import { withTls } from "./store-url.js";

describe("the store's URL", () => {
  test.each([
    "postgres://me@localhost/app",
    "postgres://me@127.0.0.1:5433/app",
    "postgres://me@[::1]:5433/app",
    "postgres:///app",
    "postgres://me@/app?host=%2Frun%2Fpostgresql&port=5433",
    "postgres://localhost/app?sslmode=disable",
  ])("is left as it is on this machine: %s", (url) => {
    expect(withTls(url, {})).toBe(url);
  });

  test.each([
    ["postgres://me@db.example/app", "postgres://me@db.example/app?sslmode=verify-full"],
    ["postgres://me@10.0.0.7:5433/app?application_name=x", "postgres://me@10.0.0.7:5433/app?application_name=x&sslmode=verify-full"],
    ["postgres://me@db.example/app?sslmode=require", "postgres://me@db.example/app?sslmode=verify-full"],
    ["postgres://me@[2001:db8::1]:5433/app?ssl=true", "postgres://me@[2001:db8::1]:5433/app?sslmode=verify-full"],
    // A host named in the query is the one that is reached.
    ["postgres://me@localhost/app?host=db.example", "postgres://me@localhost/app?host=db.example&sslmode=verify-full"],
    ["postgres://me@localhost.evil.example/app", "postgres://me@localhost.evil.example/app?sslmode=verify-full"],
    ["postgres://localhost:x@db.example/app", "postgres://localhost:x@db.example/app?sslmode=verify-full"],
  ])("is verified anywhere else: %s", (url, opened) => {
    expect(withTls(url, {})).toBe(opened);
  });

  test("is verified with certificates of one's own, also on this machine", () => {
    expect(withTls("postgres://me@localhost/app", { ca: "/etc/ca.pem" })).toBe(
      "postgres://me@localhost/app?sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem",
    );
    expect(withTls("postgres://me@localhost/app", { tls: "verify" })).toContain("sslmode=verify-full");
  });

  test.each([
    "sslmode=disable",
    "sslmode=prefer",
    "sslmode=allow",
    "sslmode=no-verify",
    "ssl=0",
    "ssl=no-verify",
    "sslmode=require&uselibpqcompat=true",
  ])("is refused where it asks for less: %s", (query) => {
    expect(() => withTls(`postgres://me@db.example/app?${query}`, {})).toThrow(/db\.example that verifies nobody/);
  });

  test("goes without only where that is said", () => {
    expect(withTls("postgres://me@db.example/app?sslmode=require", { tls: "off" })).toBe("postgres://me@db.example/app?sslmode=disable");
  });
});
