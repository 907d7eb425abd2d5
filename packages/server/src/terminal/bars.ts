const BLOCKS = " ▁▂▃▄▅▆▇█";

/** Numbers as bars beside each other, the highest as high as can be. */
export function bars(values: readonly number[]): string {
  const highest = Math.max(1, ...values);
  return values.map((value) => BLOCKS[Math.ceil((value / highest) * (BLOCKS.length - 1))]).join("");
}
