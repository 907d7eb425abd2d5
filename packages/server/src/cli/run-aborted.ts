/** A run that ends in the middle of its command, without a word: nobody reads on, or it was told to stop and does not hear of it. */
export class RunAborted extends Error {
  override readonly name = "RunAborted";
  constructor(readonly exit: number) {
    super("the run was aborted");
  }
}

/** Rejects when the run is cut short; never, where nothing can. */
export function untilAborted(signal: AbortSignal | undefined): Promise<never> {
  const rejects = new Promise<never>((_, reject) => {
    if (signal?.aborted === true) reject(signal.reason);
    else signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
  // Whoever does not wait for it does not care.
  rejects.catch(() => {});
  return rejects;
}
