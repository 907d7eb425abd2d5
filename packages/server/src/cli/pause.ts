/** Lets time pass; true if nobody called it off meanwhile. */
export function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  if (signal.aborted) return Promise.resolve(false);
  return new Promise((resolve) => {
    const end = (passed: boolean) => {
      clearTimeout(timer);
      signal.removeEventListener("abort", stop);
      resolve(passed);
    };
    const stop = () => end(false);
    const timer = setTimeout(() => end(true), ms);
    signal.addEventListener("abort", stop);
  });
}
