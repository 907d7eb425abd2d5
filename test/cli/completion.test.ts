import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { fish, zsh } from "../../scripts/servers.mjs";
import { runPawl } from "../support/run-cli.js";
import { temporaryFolder } from "../support/temporary-folder.js";
import { noTerminal, Terminal } from "../support/terminal.js";

const SIZE = { columns: 80, rows: 24 };

/** What is typed before the tab, and what stands there after it. */
const TYPED = [
  ["pawl sched", "pawl schedules"],
  ["pawl dead redrive --can", "pawl dead redrive --canary"],
  ["pawl jobs list --state d", "pawl jobs list --state dead"],
  ["pawl completion z", "pawl completion zsh"],
] as const;

/** What each shell reads when it starts, and the folder it reads it from. */
const SHELLS = {
  bash: {
    file: "/bin/bash",
    rc: "rc",
    start: (folder: string) => `bash --noprofile --rcfile ${folder}/rc -i`,
    more: "PS1='% '; source FOLDER/_pawl",
  },
  zsh: {
    file: zsh,
    rc: ".zshrc",
    start: (folder: string) => `env ZDOTDIR=${folder} ${zsh} -i`,
    more: "PROMPT='%% '; fpath=(FOLDER $fpath); autoload -U compinit; compinit -u -D",
  },
} as const;

describe.each(Object.entries(SHELLS))("completion in %s", (shell, { file, rc, start, more }) => {
  const reason = noTerminal() ?? (existsSync(file) ? undefined : `${shell} is not installed`);
  test.skipIf(reason !== undefined)(
    `writes out commands, flags and their values${reason === undefined ? "" : ` (${reason})`}`,
    {
      timeout: 120_000,
    },
    async () => {
      using folder = temporaryFolder();
      mkdirSync(folder.path);
      writeFileSync(join(folder.path, "_pawl"), (await runPawl("completion", shell)).out);
      writeFileSync(join(folder.path, rc), `${more.replaceAll("FOLDER", folder.path)}\n`);
      await using terminal = await Terminal.start(start(folder.path), SIZE);
      await terminal.shows("a prompt", (rows) => rows.some((row) => row.startsWith("%")));
      for (const [typed, completed] of TYPED) {
        await terminal.press(typed);
        await terminal.shows("what was typed", (rows) => rows.includes(`% ${typed}`));
        await terminal.press("Tab");
        await terminal.shows(completed, (rows) => rows.includes(`% ${completed}`));
        await terminal.press("C-u");
        await terminal.shows("an empty line", (rows) => !rows.some((row) => row.includes(completed)));
      }
    },
  );
});

describe("completion in fish", () => {
  test.skipIf(!existsSync(fish))("writes out commands, flags and their values, with what each is for", async () => {
    using folder = temporaryFolder();
    mkdirSync(folder.path);
    const script = join(folder.path, "pawl.fish");
    writeFileSync(script, (await runPawl("completion", "fish")).out);
    const complete = (line: string) => {
      const args = ["--no-config", "-c", `source ${script}; complete -C "${line}"`];
      const { stdout, stderr } = spawnSync(fish, args, { encoding: "utf8", env: { HOME: folder.path } });
      expect(stderr).toBe("");
      return stdout.trim().split("\n");
    };
    for (const [typed, completed] of TYPED) {
      const [word, what] = complete(typed)[0]?.split("\t") ?? [];
      expect(word).toBe(completed.split(" ").at(-1));
      if (completed === "pawl schedules") expect(what).toMatch(/^schedules: what ticks when/);
    }
    expect(complete("pawl jobs l").map((line) => line.split("\t")[0])).toEqual(["list", "logs"]);
  });
});
