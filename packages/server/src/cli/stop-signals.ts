/** Ctrl-C under npm arrives twice: from the terminal, and passed on by npm. Within this many ms they are one. */
const ECHO_MS = 300;

export type StopSignal = "SIGINT" | "SIGTERM" | "SIGHUP";
const EXIT_CODES: Readonly<Record<StopSignal, number>> = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 };

const SIGNALS = Object.keys(EXIT_CODES) as readonly StopSignal[];

/** whether somebody sees to requests to stop */
let isHandled = false;

/** Hears of requests to stop while nobody else does. A signal that nobody hears would end the process, and leave what it started. */
export function onUnhandledStop(end: (exit: number) => void): void {
  for (const signal of SIGNALS)
    process.on(signal, () => {
      if (!isHandled) end(EXIT_CODES[signal]);
    });
}

/** Asks to stop whoever hears of that. */
export function requestStopOr(nobody: () => void): void {
  if (isHandled) process.kill(process.pid, "SIGTERM");
  else nobody();
}

/** Resolves at the first request to stop. At a second one, `giveUp` is called and the process ends as soon as that is done. */
export function untilStopped(giveUp: () => void | Promise<void>): Promise<void> {
  isHandled = true;
  return new Promise((resolve) => {
    let first: number | undefined;
    for (const signal of SIGNALS) {
      process.on(signal, () => {
        const now = performance.now();
        if (first === undefined) {
          first = now;
          resolve();
        } else if (now - first > ECHO_MS) {
          void Promise.resolve(giveUp()).finally(() => process.exit(EXIT_CODES[signal]));
        }
      });
    }
  });
}

/** ms after which whoever pressed Ctrl-C is told that it was heard */
const NOTICE_DELAY_MS = 500;

/**
 * The same as a signal, for work that stops where it can be taken up again. Until it is asked for, Ctrl-C ends the process.
 * `print` hears of it where the work takes its time to stop. `reasonOf` answers what the signal is aborted with; undefined: an `AbortError`.
 */
export function stopSignal(print: (text: string) => void, reasonOf: () => unknown = () => undefined): () => AbortSignal {
  let controller: AbortController | undefined;
  return () => {
    if (controller === undefined) {
      const made = new AbortController();
      controller = made;
      void untilStopped(() => {}).then(() => {
        made.abort(reasonOf());
        setTimeout(() => print("stopping; Ctrl-C again ends it at once"), NOTICE_DELAY_MS).unref();
      });
    }
    return controller.signal;
  };
}
