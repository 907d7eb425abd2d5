export function plural(count: number, noun: string): string {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

/** ms in the unit people would use */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  if (ms < 7_200_000) return `${Math.round(ms / 60_000)} min`;
  if (ms < 172_800_000) return `${Math.round(ms / 3_600_000)} h`;
  return `${Math.round(ms / 86_400_000)} d`;
}

/** "in 5 min", "3 s ago" */
export function fromNow(date: Date, now = new Date()): string {
  const ms = date.getTime() - now.getTime();
  return ms > 0 ? `in ${duration(ms)}` : `${duration(-ms)} ago`;
}

/** as a clock shows it: h:mm:ss, or m:ss */
export function elapsed(ms: number): string {
  const seconds = Math.floor(ms / 1_000);
  const parts = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60, seconds % 60];
  const visibleParts = parts[0] === 0 ? parts.slice(1) : parts;
  return visibleParts.map((part, i) => (i === 0 ? String(part) : String(part).padStart(2, "0"))).join(":");
}
