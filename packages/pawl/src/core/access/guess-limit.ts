/**
 * How often an address may be wrong about a key: up to 20 times at once, then one in three seconds. It counts what
 * fails, by where it came from; nothing is ever held against the key that was guessed at, or anybody could lock it.
 */
const MOST = 20;
/** ms in which that many are forgiven */
const PER = 60_000;
const MAX_ADDRESSES = 100_000;

export class GuessLimit {
  /** when all of its failures will be forgiven, by address; the oldest first */
  readonly #forgivenAt = new Map<string, number>();

  /** ms until this address may try again; 0: now */
  wait(address: string, now: number): number {
    const forgivenAt = this.#forgivenAt.get(blockOf(address)) ?? now;
    return Math.max(0, Math.ceil(forgivenAt - now - PER + PER / MOST));
  }

  failed(address: string, now: number): void {
    const block = blockOf(address);
    const forgivenAt = Math.max(now, this.#forgivenAt.get(block) ?? now) + PER / MOST;
    this.#forgivenAt.delete(block);
    this.#forgivenAt.set(block, forgivenAt);
    for (const [oldest, at] of this.#forgivenAt) {
      if (at > now && this.#forgivenAt.size <= MAX_ADDRESSES) break;
      this.#forgivenAt.delete(oldest);
    }
  }
}

/** What one caller may have of addresses: one who has an IPv6 address has all of its /64; an IPv4 address written as IPv6 is itself. */
export function blockOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined || !address.includes(":")) return mapped ?? address;
  const [head = "", tail] = (address.split("%")[0] ?? "").toLowerCase().split("::");
  const groups = (text: string) => (text === "" ? [] : text.split(":"));
  const missing = tail === undefined ? 0 : 8 - groups(head).length - groups(tail).length;
  return [...groups(head), ...Array<string>(Math.max(0, missing)).fill("0"), ...groups(tail ?? "")]
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ""))
    .join(":");
}
