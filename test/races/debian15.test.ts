import { readdirSync, readFileSync } from "node:fs";
import { raceOnOtherServer } from "../support/races/race.js";

raceOnOtherServer();

/** The races of the files beside this one that are for everywhere, once more on the oldest Postgres. */
const beside = new URL("./", import.meta.url);
for (const name of readdirSync(beside)) {
  const file = new URL(name, beside);
  if (file.href !== import.meta.url && readFileSync(file, "utf8").includes("ALL_SERVERS")) await import(file.href);
}
