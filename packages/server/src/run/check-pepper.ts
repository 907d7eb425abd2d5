import type { Pawl } from "pawl";
import { serviceOf } from "pawl/service";
import { ConfigError, whereOf } from "../config/problem.js";
import type { Configuration } from "../config/read.js";
import { plural } from "../text/amounts.js";
import { readWhenReachable } from "./check-master-keys.js";

/**
 * Whether the pepper of the configuration is the one that the keys of the store were made with. With another one every caller would be told
 * that its key is not good, which is no fault of theirs: it is refused at the start. Where some keys were made with it, the others are told of.
 */
export async function checkPepperFits(configuration: Configuration, pawl: Pawl, writeLine: (line: string) => void): Promise<void> {
  if (configuration.settings["apiKeys.pepper"] === undefined) return;
  const peppers = await readWhenReachable(() => serviceOf(pawl).apiKeys.status());
  const others = peppers.filter(({ here }) => !here).reduce((sum, { count }) => sum + count, 0);
  if (others === 0) return;
  if (peppers.some(({ here }) => here)) {
    writeLine(`keys        ${plural(others, "API key")} made with another pepper will be refused: rotate them, or give that pepper`);
    return;
  }
  throw new ConfigError([
    {
      where: whereOf(configuration, "apiKeys.pepper"),
      what: `API keys of the store were made with another pepper (${others}), and none with this one: all of them would be refused`,
      help: "give the pepper that they were made with; if it is lost, `pawl api-keys create` makes a key with this one",
    },
  ]);
}
