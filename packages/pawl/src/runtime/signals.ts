/** The only place that hears the signals of the process, or ends it. */
const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const;
export type StopSignal = keyof typeof EXIT_CODES;

/** Calls back on every request to stop, with its number from 1, until the answer is called. */
export function onStopSignal(call: (signal: StopSignal, count: number) => void): () => void {
  let count = 0;
  const listeners = (Object.keys(EXIT_CODES) as StopSignal[]).map((signal) => {
    const listener = () => call(signal, ++count);
    process.on(signal, listener);
    return () => void process.off(signal, listener);
  });
  return () => {
    for (const stop of listeners) stop();
  };
}

export function exitOn(signal: StopSignal): void {
  process.exit(EXIT_CODES[signal]);
}
