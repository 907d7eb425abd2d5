/**
 * What one of several that share a worker's time has had of it: a queue with rules of its own, a priority, a tenant. They
 * are nested; a job's time counts for its tenant, the priority, and so on up.
 *
 * Time is virtual: ms of slots, divided by the weight. Who has had least is next, so shares of time come out as the
 * weights, whatever the lengths of jobs: a long one is paid for while it runs. Nothing is saved up: who was away comes
 * back level with the one that has had least, and one job ahead of it.
 */
export class Share {
  /** virtual ms of attempts that are over */
  #had = 0;
  /** the least that any of those inside it has had */
  #level = 0;
  /** jobs claimed and not over */
  #inHand = 0;
  /** jobs asked for by claims under way */
  #requested = 0;
  #running = 0;
  /** when the running ones were started, added up */
  #starts = 0;
  /** ms that a job takes, lately */
  #mean: number | undefined;
  /** how often those inside it were levelled, and the last time of its parent's that it was among them */
  #rounds = 0;
  #round = Number.NEGATIVE_INFINITY;

  constructor(
    readonly parent: Share | undefined,
    public weight = 1,
  ) {}

  get idle(): boolean {
    return this.#inHand === 0 && this.#requested === 0;
  }

  /** ms that one of its jobs is taken to cost: what they took lately, or as long as nobody knows, those beside it */
  get cost(): number {
    return this.#mean ?? this.parent?.cost ?? MIN_JOB_MS;
  }

  /** ms that its jobs took lately, as far as any ended */
  get took(): number | undefined {
    return this.#mean;
  }

  request(count: number): void {
    for (let share: Share | undefined = this; share !== undefined; share = share.parent) share.#requested += count;
  }

  take(count: number): void {
    for (let share: Share | undefined = this; share !== undefined; share = share.parent) share.#inHand += count;
  }

  begin(at: number): void {
    for (let share: Share | undefined = this; share !== undefined; share = share.parent) {
      share.#running++;
      share.#starts += at;
    }
  }

  end(startedAt: number, now: number): void {
    const took = now - startedAt;
    for (let share: Share | undefined = this; share !== undefined; share = share.parent) {
      share.#running--;
      share.#starts -= startedAt;
      // Never nothing, or one whose jobs take no time would always be next.
      share.#had += Math.max(took, MIN_JOB_MS) / share.weight;
      share.#mean = Math.max(MIN_JOB_MS, share.#mean === undefined ? took : share.#mean + MEAN_WEIGHT * (took - share.#mean));
    }
  }

  /** Virtual ms it has had, and will have had when the jobs in hand are over. */
  had(now: number): number {
    const { cost } = this;
    const running = Math.max(this.#running * now - this.#starts, this.#running * cost);
    return this.#had + (running + (this.#inHand - this.#running) * cost) / this.weight;
  }

  /** The same with the jobs that are asked for: they may come. */
  due(now: number): number {
    return this.had(now) + (this.#requested * this.cost) / this.weight;
  }

  /**
   * Among those inside it this is who has work now. One that was away may not be further behind than one job; one that was
   * here the last time, not further than all that is in hand: by so much may be wrong what is counted of it in advance.
   */
  level(inside: Iterable<Share>, now: number): void {
    let least = Number.POSITIVE_INFINITY;
    for (const share of inside) least = Math.min(least, share.had(now));
    if (least > this.#level && least < Number.POSITIVE_INFINITY) this.#level = least;
    this.#rounds++;
    for (const share of inside) {
      const leeway = share.#round === this.#rounds - 1 ? Math.max(1, this.#inHand) : 1;
      share.#round = this.#rounds;
      const behind = this.#level - (leeway * this.cost) / share.weight - share.had(now);
      if (behind > 0) share.#had += behind;
    }
  }

  /** Nothing is lost if it is forgotten: it is not ahead of the others. */
  isLevel(now: number): boolean {
    return this.idle && this.parent !== undefined && this.had(now) <= this.parent.#level;
  }
}

/** ms; even a job that does nothing takes some, and unknown ones are alike */
const MIN_JOB_MS = 0.05;
/** How much a new duration counts. */
const MEAN_WEIGHT = 0.05;
