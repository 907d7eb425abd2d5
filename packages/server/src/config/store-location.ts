import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { type Reference, referenceOf } from "../secrets/reference.js";
import { InvalidSetting, type SettingKind } from "./kinds.js";

/** Where the store is, as a setting says it. */
export type StoreLocation =
  | { readonly kind: "memory" }
  | { readonly kind: "folder"; readonly folder: string }
  | { readonly kind: "postgres"; readonly url: string }
  /** a whole URL, password and all, that is kept elsewhere */
  | { readonly kind: "reference"; readonly reference: Reference };

/** `file:` is a folder here, as it is for `open`; a URL in a file is read by `command:cat PATH`. */
export const storeLocation: SettingKind<StoreLocation> = {
  word: "place",
  of(value, folder) {
    if (typeof value !== "string" || value === "") throw new InvalidSetting("it is no place", LOCATION_HELP);
    if (value === "memory:") return { kind: "memory" };
    if (/^postgres(ql)?:\/\//i.test(value)) return { kind: "postgres", url: value };
    if (/^(env|command):/.test(value)) {
      const reference = referenceOf(value, folder);
      if (reference === undefined) throw new InvalidSetting("it is no reference to a URL", "write env:NAME or command:PROGRAM ARGUMENTS");
      return { kind: "reference", reference };
    }
    if (/^file:\/\/\//i.test(value)) return { kind: "folder", folder: fileURLToPath(value) };
    if (/^[a-z]{2,}:\/\//i.test(value)) throw new InvalidSetting(`${value.slice(0, value.indexOf(":"))}:// is no store Pawl knows`, LOCATION_HELP);
    return { kind: "folder", folder: resolve(folder, value.replace(/^file:/i, "")) };
  },
};

const LOCATION_HELP = 'write a folder, "postgres://user@host/database", or "memory:"';

/** Whether the URL itself holds a password, which everybody on the machine could read in a flag. */
export function holdsPassword(url: string): boolean {
  const [, login = ""] = /^\w+:\/\/([^/?#]*)@/.exec(url) ?? [];
  return login.includes(":") || /[?&]password=/i.test(url);
}
