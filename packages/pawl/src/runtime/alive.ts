/**
 * Timers of the clock do not keep a process alive, so that an idle pawl never holds up an exit. What people wait
 * for (a worker at work, a result) does: it holds the process until the answer is called.
 */
export function keepAlive(): () => void {
  const timer = setInterval(() => {}, 2 ** 30);
  return () => clearInterval(timer);
}
