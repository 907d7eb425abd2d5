import type { Pawl } from "pawl";
import { NOTHING } from "../live/top-data.js";
import { sheetOf } from "../live/top-rows.js";
import type { Session } from "./session.js";

/** How things are, once: for scripts, and for those without a terminal. */
export async function snapshot({ out }: Session, pawl: Pawl): Promise<void> {
  const [queues, workers, lanes] = await Promise.all([pawl.queues.list(), pawl.workers(), pawl.lanes()]);
  out.answer({ queues, workers, lanes }, () => {
    const { headings, rows } = sheetOf("queues", { ...NOTHING, queues }, { sort: 0, filter: "" });
    const counted = headings.length - 2;
    out.table(
      headings.slice(0, counted),
      rows.map(({ cells }) => cells.slice(0, counted)),
    );
  });
}
