import { readdirSync, readFileSync } from "node:fs";
import { raceAway } from "../support/race.js";

raceAway();

/** The races of the files beside this one that are for everywhere, once more on the oldest Postgres. */
const beside = new URL("./", import.meta.url);
for (const name of readdirSync(beside)) {
  const file = new URL(name, beside);
  if (file.href !== import.meta.url && readFileSync(file, "utf8").includes("EVERYWHERE")) await import(file.href);
}
