import { isIP } from "node:net";
import { resolve } from "node:path";
import type { Duration } from "pawl";
import { milliseconds, nearest } from "pawl/service";
import { type Network, networkOf } from "../net/network.js";
import { REFERENCE_HELP, type Reference, referenceOf } from "../secrets/reference.js";

/** What a setting may hold. `of` takes what a file says, or the text of a flag or variable; what it throws is the reason and the help. */
export interface SettingKind<T> {
  /** stands for the value in `--help` */
  readonly word: string;
  /** `folder` is what a relative path is relative to */
  of(value: unknown, folder: string): T;
}

export class InvalidSetting extends Error {
  constructor(
    readonly what: string,
    readonly help: string,
  ) {
    super(`${what}; ${help}`);
  }
}

function displayed(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value);
  return typeof value === "object" && value !== null ? (Array.isArray(value) ? "a list" : "an object") : String(value);
}

function textOf(value: unknown): string {
  if (typeof value === "string" && value !== "") return value;
  throw new InvalidSetting(`${value === "" ? "it" : displayed(value)} is ${value === "" ? "empty" : "no text"}`, "write a text");
}

export const text: SettingKind<string> = { word: "text", of: textOf };

export const path: SettingKind<string> = { word: "path", of: (value, folder) => resolve(folder, textOf(value)) };

export const whole = (min: number, max: number): SettingKind<number> => ({
  word: "number",
  of(value) {
    const number = typeof value === "string" && /^\d+$/.test(value) ? Number(value) : value;
    if (typeof number === "number" && Number.isInteger(number) && number >= min && number <= max) return number;
    throw new InvalidSetting(`${displayed(value)} is no whole number from ${min} to ${max}`, "write one in digits");
  },
});

export const yesNo: SettingKind<boolean> = {
  word: "true|false",
  of(value) {
    if (value === true || value === "true") return true;
    if (value === false || value === "false") return false;
    throw new InvalidSetting(`${displayed(value)} is neither true nor false`, "write one of them");
  },
};

export const duration: SettingKind<Duration> = {
  word: "duration",
  of(value) {
    const input = typeof value === "string" && /^\d+$/.test(value) ? Number(value) : value;
    try {
      milliseconds(input as Duration);
      return input as Duration;
    } catch {
      throw new InvalidSetting(`${displayed(value)} is no duration`, 'write one like "250ms", "30s", "5m", "24h" or "7d"');
    }
  },
};

export const oneOf = <T extends string>(...choices: readonly T[]): SettingKind<T> => ({
  word: choices.join("|"),
  of(value) {
    if (choices.includes(value as T)) return value as T;
    throw new InvalidSetting(`${displayed(value)} is none of ${choices.join(", ")}`, didYouMean(value, choices) ?? "write one of them");
  },
});

/** A list in the file, or a text with commas. */
export const listOf = <T>(kind: SettingKind<T>): SettingKind<readonly T[]> => ({
  word: `${kind.word},…`,
  of(value, folder) {
    const items = typeof value === "string" ? value.split(",").map((item) => item.trim()) : value;
    if (!Array.isArray(items)) throw new InvalidSetting(`${displayed(value)} is no list`, "write a list, or a text with commas between");
    return items.map((item) => kind.of(item, folder));
  },
});

/** A value for each name: an object in the file, or a text of `name=value` with commas between. */
export const tableOf = <T>(kind: SettingKind<T>): SettingKind<Readonly<Record<string, T>>> => ({
  word: `name=${kind.word},…`,
  of(value, folder) {
    const pairs = typeof value === "string" ? value.split(",").map(pairOf) : Object.entries(Object(value) as object);
    if (typeof value !== "string" && (typeof value !== "object" || value === null || Array.isArray(value)))
      throw new InvalidSetting(`${displayed(value)} is no table`, "write an object, or name=value with commas between");
    return Object.fromEntries(pairs.map(([name, one]) => [name, kind.of(one, folder)]));
  },
});

function pairOf(text: string): readonly [string, string] {
  const [, name, value] = /^\s*([^=\s]+)\s*=\s*(\S+)\s*$/.exec(text) ?? [];
  if (name === undefined || value === undefined)
    throw new InvalidSetting(`${displayed(text)} is no name=value`, "write one, or several with commas between");
  return [name, value];
}

export interface Address {
  readonly host: string;
  readonly port: number;
}

export const address: SettingKind<Address> = {
  word: "host:port",
  of(value) {
    const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(textOf(value)) ?? [];
    const host = bracketed ?? plain;
    const port = Number(digits);
    const fits = bracketed !== undefined ? isIP(bracketed) === 6 : host !== undefined && /^[\w.-]+$/.test(host);
    if (host !== undefined && fits && port <= 65_535) return { host, port };
    throw new InvalidSetting(`${displayed(value)} is no address`, "write host:port, as in 127.0.0.1:7295 or [::1]:7295");
  },
};

export const network: SettingKind<Network> = {
  word: "network",
  of(value) {
    const found = networkOf(textOf(value));
    if (found !== undefined) return found;
    throw new InvalidSetting(`${displayed(value)} is no network`, "write one like 10.0.0.0/8 or fd00::/8, or one address");
  },
};

/** Never repeats what it was given: that may be the secret itself. */
export const secret: SettingKind<Reference> = {
  word: "file:…|env:…|command:…",
  of(value, folder) {
    const reference = typeof value === "string" ? referenceOf(value, folder) : undefined;
    if (reference !== undefined) return reference;
    throw new InvalidSetting("a secret does not stand here in plain text", REFERENCE_HELP);
  },
};

export function didYouMean(value: unknown, choices: readonly string[]): string | undefined {
  const near = typeof value === "string" ? nearest(value, choices) : undefined;
  return near === undefined ? undefined : `did you mean ${near}?`;
}
