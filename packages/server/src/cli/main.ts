#!/usr/bin/env node
import { Command, Option } from "commander";
import { isPawlError } from "pawl";
import { type DemoOptions, demo } from "./demo.js";

const program = new Command("pawl").description("Durable jobs on an embedded store, or on Postgres.").showHelpAfterError();

program
  .command("demo")
  .description("run a small shop's jobs and watch them move")
  .argument("[store]", "the folder to keep them in, or a postgres:// URL", "./data")
  .option("--plain", "print lines as things happen, also in a terminal")
  .addOption(new Option("--engine <engine>", "of a folder; left out: the first that can run here").choices(["native", "pglite"]))
  .action((store: string, options: DemoOptions) => demo(store, options));

// Whoever reads us has gone (`| head`): there is nobody left to tell, but work to finish.
let alone = false;
process.stdout.on("error", () => {
  if (!alone) process.kill(process.pid, "SIGTERM");
  alone = true;
});

try {
  await program.parseAsync();
} catch (error) {
  if (!isPawlError(error)) throw error;
  process.stderr.write(`pawl: ${error.message}\n`);
  process.exitCode = 1;
}
