import { createRequire } from "node:module";
import { pawlError } from "../../../core/values/error.js";

/** Drivers are optional: one that is asked for and missing is named, with how to get it. */
export function requireInstalled(name: string): void {
  try {
    createRequire(import.meta.url).resolve(name);
  } catch (error) {
    throw pawlError("driver_missing", { package: name }, error);
  }
}
