import type { Command } from "commander";
import { slotsText } from "../../text/worker-slots.js";
import type { Act } from "../session.js";
import { fromNow } from "../text.js";

export function build(command: Command, act: Act): void {
  act(
    command.command("list").alias("ls").description("the workers that gave a sign of life in the last 45 s, in all processes"),
    async ({ out, pawl }) => {
      const { items: workers } = await (await pawl()).workers.list();
      out.answer({ items: workers }, () => {
        const now = new Date();
        out.table(
          ["worker", "since", "slots in use", "oldest", "version", "queues", "capabilities", "tasks"],
          workers.map((worker) => {
            const { name, since, oldest, version, queues, provides, tasks } = worker;
            const runs = oldest === undefined ? "" : fromNow(oldest, now);
            return [
              name,
              fromNow(since, now),
              slotsText(worker),
              runs,
              version ?? "?",
              queues?.join(",") ?? "all",
              provides.capabilities.join(","),
              tasks.join(","),
            ];
          }),
        );
        if (workers.length === 0) out.note("no worker is live");
      });
    },
  );
}
