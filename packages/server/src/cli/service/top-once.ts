import type { Pawl } from "pawl";
import { NO_DATA } from "../../terminal/top/data.js";
import { sheetOf } from "../../terminal/top/rows.js";
import type { CommandSession } from "../session.js";

/** How things are, once: for scripts, and for those without a terminal. */
export async function snapshot({ out }: CommandSession, pawl: Pawl): Promise<void> {
  const [{ items: queues }, { items: workers }, { items: lanes }] = await Promise.all([pawl.queues.list(), pawl.workers.list(), pawl.lanes.list()]);
  out.answer({ queues, workers, lanes }, () => {
    const { headings, rows } = sheetOf("queues", { ...NO_DATA, queues }, { sort: 0, filter: "" });
    const columnCount = headings.length - 2;
    out.table(
      headings.slice(0, columnCount),
      rows.map(({ cells }) => cells.slice(0, columnCount)),
    );
  });
}
