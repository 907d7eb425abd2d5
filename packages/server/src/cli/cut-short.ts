/** A run that ends in the middle of its command, without a word: nobody reads on, or it was told to stop and does not hear of it. */
export class CutShort extends Error {
  override readonly name = "CutShort";
  constructor(readonly exit: number) {
    super("cut short");
  }
}

/** Rejects when the run is cut short; never, where nothing can. */
export function untilCut(cut: AbortSignal | undefined): Promise<never> {
  const rejects = new Promise<never>((_, reject) => {
    if (cut?.aborted === true) reject(cut.reason);
    else cut?.addEventListener("abort", () => reject(cut.reason), { once: true });
  });
  // Whoever does not wait for it does not care.
  rejects.catch(() => {});
  return rejects;
}
