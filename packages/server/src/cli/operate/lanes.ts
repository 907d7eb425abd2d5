import type { Command } from "commander";
import type { Act } from "../session.js";

export function build(command: Command, act: Act): void {
  command.option("--unserved", "only those that no live worker can run");
  act<{ readonly unserved?: true }>(command, async ({ out, pawl }, { unserved = false }) => {
    const { items: lanes } = await (await pawl()).lanes.list({ unserved });
    out.answer({ items: lanes }, () => {
      out.table(
        ["queue", "priority", "tenant", "task", "workers", "why not"],
        lanes.map(({ lane, workers, why = "" }) => [lane.queue, lane.priority, lane.tenant, lane.task, workers, why]),
      );
      if (lanes.length === 0) out.note(unserved ? "every lane with ready jobs has a worker" : "no lane has ready jobs");
    });
  });
}
