import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";

/** The lines of a file, or of standard input if it is called "-", as they come. */
export async function* linesOf(file: string, stdin: Readable): AsyncGenerator<string> {
  const input = file === "-" ? stdin : createReadStream(file);
  // An error of the stream alone would leave the reader waiting.
  const broken = new Promise<never>((_, reject) => input.once("error", reject));
  broken.catch(() => {});
  const lines = createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })[Symbol.asyncIterator]();
  for (;;) {
    const next = await Promise.race([lines.next(), broken]);
    if (next.done === true) return;
    yield next.value;
  }
}
