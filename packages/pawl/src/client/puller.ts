import type { Lane } from "../core/lane.js";
import { Share } from "../core/share.js";
import { Backoff } from "../runtime/backoff.js";
import { newBootId } from "../runtime/identity.js";
import { Caps } from "../worker/caps.js";
import type { ClaimerParts, Claims } from "../worker/claimer.js";
import type { Settings } from "../worker/options.js";
import { HoldingCap } from "./holding.js";
import { runOptions } from "./options.js";
import type { Pulled, PullStore } from "./pull-store.js";

/** ms that one long poll waits */
const WAIT = 20_000;
/** ms that a stop is held up for what may have been missed */
const MISSED_WITHIN = 2_000;
const MOST_ASKED = 1_000;

/**
 * Asks the service for jobs, one long poll at a time: for as many as can start soon. What is fair, within limits and
 * there at all is for the service to know, which claims by the same rules as a worker beside the store would.
 */
export class Puller implements Claims {
  readonly lanes = 0;
  readonly offers: Claims["offers"];
  readonly #holding = new HoldingCap();
  readonly #backoff: Backoff;
  readonly #serves: object;
  #open = false;
  #asking: { readonly gone: AbortController; readonly limit: number } | undefined;
  #resting = false;
  #landed: (() => void)[] = [];

  constructor(
    private readonly parts: ClaimerParts,
    private readonly pull: PullStore,
  ) {
    const share = new Share(undefined);
    this.offers = { caps: new Caps([...parts.caps, this.#holding]), shareOf: () => share, took: () => undefined, shut: () => [] };
    this.#backoff = new Backoff(parts.clock, { min: 50, max: 1_500 });
    this.#serves = servesOf(parts.settings, parts);
  }

  get inFlight(): number {
    return this.#asking === undefined ? 0 : 1;
  }

  start(): void {
    this.#open = true;
    this.want();
  }

  /** Asks no more. An answer that is on its way is given back by whoever takes it. */
  stop(): Promise<void> {
    this.#open = false;
    this.#asking?.gone.abort();
    if (this.#asking === undefined) return Promise.resolve();
    return new Promise((resolve) => this.#landed.push(resolve));
  }

  hear(): void {}
  settled(_: Lane): void {}

  want(): void {
    if (!this.#open || this.#resting) return;
    const { hands, settings } = this.parts;
    const free = Math.min(hands.free, MOST_ASKED);
    const size = Math.min(settings.claimBatch, MOST_ASKED, hands.free + hands.ahead - hands.held);
    if (size <= 0) return;
    if (this.#asking !== undefined) return;
    // Every slot is spoken for: what is left is a matter of batch size, so let a good one gather.
    if (hands.held >= hands.free && size < Math.min(settings.claimBatch, hands.ahead / 2)) return;
    void this.#ask(size, Math.max(0, free - hands.held));
  }

  async #ask(limit: number, free: number): Promise<void> {
    const { clock, onClaimed, onError } = this.parts;
    const gone = new AbortController();
    this.#asking = { gone, limit };
    let sentAt = clock.monotonic();
    const body = { ...this.#serves, limit, free: Math.min(free, limit), wait: WAIT, holding: this.#holding.told(), request: newBootId() };
    let pulled: readonly Pulled[] = [];
    try {
      pulled = await this.pull.claim(body, { timeout: WAIT + 15_000, signal: gone.signal });
      this.#backoff.reset();
    } catch (error) {
      if (gone.signal.aborted) {
        sentAt = clock.monotonic();
        pulled = await this.#missed(body);
      } else {
        onError("claim", error);
        this.#rest();
      }
    }
    this.#asking = undefined;
    for (const resolve of this.#landed.splice(0)) resolve();
    // It began while the service waited for us, so long after it heard of us: counted from when we spoke, that is never too late.
    for (const { claimed, after, suspect } of pulled) onClaimed(claimed, sentAt + after, suspect);
    this.want();
  }

  /** What was on its way when it hung up: repeated, it is answered the same, and need not wait for its leases to run out. */
  async #missed(body: object): Promise<readonly Pulled[]> {
    try {
      return await this.pull.claim({ ...body, wait: 0 }, { timeout: MISSED_WITHIN, tries: 1 });
    } catch {
      return [];
    }
  }

  #rest(): void {
    this.#resting = true;
    this.parts.clock.after(this.#backoff.next(), () => {
      this.#resting = false;
      this.want();
    });
  }
}

/** What it serves and has, as the service is told. */
function servesOf(settings: Settings, { plans }: ClaimerParts): object {
  const { concurrency, queues, tasks, bands, tenants, tags, amounts, reserve, queueSlots, taskSlots } = settings;
  const slots = { ...some("queues", queueSlots), ...some("tasks", taskSlots) };
  return {
    concurrency,
    tasks: tasks.map((name) => runOptions(plans.of({ queue: "", task: name })?.task ?? { name, options: {} })),
    ...(queues === undefined ? {} : { queues }),
    ...(bands === undefined ? {} : { bands }),
    ...(tenants === undefined ? {} : { tenants }),
    ...(tags.length === 0 ? {} : { tags }),
    ...(Object.keys(amounts).length === 0 ? {} : { amounts }),
    ...(reserve.length === 0 ? {} : { reserve }),
    ...(Object.keys(slots).length === 0 ? {} : { slots }),
  };
}

function some(name: string, sizes: ReadonlyMap<string, number>): object {
  return sizes.size === 0 ? {} : { [name]: Object.fromEntries(sizes) };
}
