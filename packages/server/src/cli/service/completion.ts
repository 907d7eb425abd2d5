import { Argument, type Command } from "commander";
import type { Act } from "../session.js";
import { SHELLS, type Shell, scriptFor, treeOf } from "./completion-scripts.js";

export function build(command: Command, act: Act): void {
  command.addArgument(new Argument("<shell>", "whose script to print").choices(SHELLS)).addHelpText(
    "after",
    `
  bash   pawl completion bash > /etc/bash_completion.d/pawl
  zsh    pawl completion zsh > "\${fpath[1]}/_pawl"
  fish   pawl completion fish > ~/.config/fish/completions/pawl.fish`,
  );
  act(command, async ({ out, program }, _, shell) => {
    out.io.stdout.write(scriptFor(shell as Shell, treeOf(await program())));
  });
}
