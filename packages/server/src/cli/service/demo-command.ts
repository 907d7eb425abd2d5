import { type Command, Option } from "commander";
import type { Act } from "../session.js";
import type { DemoOptions } from "./demo.js";

export function build(command: Command, act: Act): void {
  command
    .argument("[store]", "the folder to keep them in, or a postgres:// URL (default: --store, or ./data)")
    .option("--plain", "print lines as things happen, also in a terminal")
    .addOption(new Option("--engine <engine>", "of a folder; left out: the first that can run here").choices(["native", "pglite"]));
  act<DemoOptions>(command, async ({ target }, options, store) => {
    const { demo } = await import("./demo.js");
    await demo(store ?? target.store ?? "./data", options);
  });
}
