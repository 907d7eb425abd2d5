/**
 * Figures are plain numbers; their names end in the unit: `perSecond`, `p99Ms`, `walKB`, `rssMB`, `cpuSeconds`.
 * What ends in none of these is a ratio or a count.
 */
const UNITS: readonly { readonly suffix: RegExp; readonly unit: string }[] = [
  { suffix: /perSecond$/i, unit: "/s" },
  { suffix: /Ms$/, unit: " ms" },
  { suffix: /Us$/, unit: " µs" },
  { suffix: /KB$/, unit: " KB" },
  { suffix: /MB$/, unit: " MB" },
  { suffix: /Seconds$/i, unit: " s" },
  { suffix: /Percent$/, unit: " %" },
  { suffix: /^ratio$/, unit: " ×" },
];

export function unitOf(figure: string): string {
  return UNITS.find(({ suffix }) => suffix.test(figure))?.unit ?? "";
}

/** `131_234` of `perSecond` → `131k/s`. */
export function formatted(figure: string, value: number): string {
  return `${short(value)}${unitOf(figure)}`;
}

/** Three digits and no more: the next ones are noise. */
export function short(value: number): string {
  const size = Math.abs(value);
  if (size >= 999_500) return `${digits(value / 1e6)}M`;
  if (size >= 9_995) return `${digits(value / 1e3)}k`;
  return digits(value);
}

function digits(value: number): string {
  const size = Math.abs(value);
  if (size >= 99.95) return Math.round(value).toLocaleString("en");
  return String(Number(value.toFixed(size >= 9.995 ? 1 : size >= 0.00995 || size === 0 ? 2 : 4)));
}

/** `claimP99Ms` → `claim p99`, `perSecond` → `per second`: for heads of columns, where the unit stands in the cells. */
export function headOf(figure: string): string {
  const bare = figure.replace(/(?<=.)(PerSecond|Ms|Us|KB|MB|Seconds|Percent)$/, "");
  return bare
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replace(/([a-z])(\d)/g, (_, letter: string, digit: string) => (letter === "p" ? `p${digit}` : `${letter} ${digit}`))
    .replace(/\b([A-Z])(?![A-Z])/g, (letter) => letter.toLowerCase())
    .replace(/\bp999\b/i, "p99.9");
}
