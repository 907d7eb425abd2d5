import type { LiveWorkerView } from "pawl/service";

/** How full a worker is: "3 of 10", and how many of them go on beyond their time. One of an older version says how many it has, and no more. */
export function slotsText({ concurrency, slots }: Pick<LiveWorkerView, "concurrency" | "slots">): string {
  if (slots === undefined) return `? of ${concurrency.total}`;
  const { inUse, total, overrun, stuck } = slots;
  return `${inUse} of ${total}${overrun === 0 ? "" : `, ${overrun} overrun`}${stuck === true ? ", stuck" : ""}`;
}
