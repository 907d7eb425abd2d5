/** What is going on: a line that is rewritten on a terminal, and only finished facts elsewhere. */
export interface Progress {
  /** now; the next one takes its place */
  say(text: string): void;
  /** a fact that stays */
  note(text: string): void;
  /** takes the live line away */
  clear(): void;
}

const QUIET_MS = 100;

/** On stderr, so that what is printed for programs stays clean. */
export function progressOn(stream: NodeJS.WriteStream): Progress {
  if (!stream.isTTY) return plain(stream);
  let shownAt = 0;
  const clear = () => void stream.write("\r\x1b[K");
  return {
    say(text) {
      const now = performance.now();
      if (now - shownAt < QUIET_MS) return;
      shownAt = now;
      clear();
      stream.write(text.slice(0, (stream.columns ?? 80) - 1));
    },
    note(text) {
      clear();
      stream.write(`${text}\n`);
      shownAt = 0;
    },
    clear,
  };
}

/** A line when something is over, and a sign of life now and then in between. */
function plain(stream: NodeJS.WriteStream): Progress {
  const SIGN_OF_LIFE_MS = 10_000;
  let shownAt = performance.now();
  const write = (text: string) => {
    shownAt = performance.now();
    stream.write(`${text}\n`);
  };
  return {
    say(text) {
      if (performance.now() - shownAt >= SIGN_OF_LIFE_MS) write(text);
    },
    note: write,
    clear() {},
  };
}
