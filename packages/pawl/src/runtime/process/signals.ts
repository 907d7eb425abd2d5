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

/** What a process ends with that handlers keep alive: as sysexits.h has them, EX_SOFTWARE and EX_TEMPFAIL. */
export const LOST_HANDLER_EXIT_CODES = {
  /** it was told to stop, and handlers had not ended when their time was up */
  unended: 70,
  /** a worker of its was stuck: start another one */
  stuck: 75,
} as const;

export function exitWith(code: number): void {
  process.exit(code);
}

/** Ends the process then, whatever it waits for, unless it is over by then or the answer is called. */
export function exitAfter(ms: number, code: number): () => void {
  const timer = setTimeout(() => process.exit(code), ms).unref();
  return () => clearTimeout(timer);
}

const leaving = new Set<() => void>();
const leave = () => {
  for (const call of leaving) call();
};

/** Calls back when the process ends by its own will, where nothing can be waited for any more, until the answer is called. */
export function atExit(call: () => void): () => void {
  // One listener for all: Node takes many for a leak.
  if (leaving.size === 0) process.on("exit", leave);
  leaving.add(call);
  return () => {
    leaving.delete(call);
    if (leaving.size === 0) process.off("exit", leave);
  };
}
