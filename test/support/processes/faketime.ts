import { existsSync, readdirSync } from "node:fs";
import { faketime } from "../../../scripts/servers.mjs";

export type Faketime =
  | { readonly available: true; readonly env: (offset: string) => NodeJS.ProcessEnv }
  | { readonly available: false; readonly reason: string };

/** A clock of its own for one process. Monotonic time stays true: faking it hangs programs, and no machine does it. */
export function fakeTime(): Faketime {
  if (!existsSync(faketime)) return { available: false, reason: "faketime is not installed (npm test installs it as root on Debian)" };
  const library = readdirSync("/usr/lib")
    .map((folder) => `/usr/lib/${folder}/faketime/libfaketime.so.1`)
    .find((file) => existsSync(file));
  if (library === undefined) return { available: false, reason: "libfaketime is not where Debian puts it" };
  return {
    available: true,
    env: (offset) => ({ LD_PRELOAD: library, FAKETIME: offset, FAKETIME_DONT_FAKE_MONOTONIC: "1", FAKETIME_DONT_RESET: "1" }),
  };
}
