/**
 * What one of several that share a worker's time has had of it: a queue with rules of its own, a band, a tenant. They
 * are nested; a job's time counts for its tenant, the band, and so on up.
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
  #asked = 0;
  #running = 0;
  /** when the running ones were started, added up */
  #starts = 0;
  /** ms that a job takes, lately */
  #mean: number | undefined;

  constructor(
    readonly parent: Share | undefined,
    public weight = 1,
  ) {}

  get idle(): boolean {
    return this.#inHand === 0 && this.#asked === 0;
  }

  /** ms that a job inside it is taken to cost until it is over, whoever's it is */
  get cost(): number {
    return this.#mean ?? LEAST;
  }

  ask(count: number): void {
    for (let share: Share | undefined = this; share !== undefined; share = share.parent) share.#asked += count;
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
      share.#had += Math.max(took, LEAST) / share.weight;
      share.#mean = Math.max(LEAST, share.#mean === undefined ? took : share.#mean + EASE * (took - share.#mean));
    }
  }

  /** Virtual ms it has had, what runs and what is to come for jobs in hand included. */
  had(now: number, cost: number): number {
    return this.#had + (this.#running * now - this.#starts + this.#inHand * cost) / this.weight;
  }

  /** The same with the jobs that are asked for: they may come. */
  due(now: number, cost: number): number {
    return this.had(now, cost) + (this.#asked * cost) / this.weight;
  }

  /** Among those inside it this is who has work now: none may be further behind than one job. */
  level(inside: Iterable<Share>, now: number): void {
    let least = Number.POSITIVE_INFINITY;
    for (const share of inside) least = Math.min(least, share.had(now, this.cost));
    if (least > this.#level && least < Number.POSITIVE_INFINITY) this.#level = least;
    for (const share of inside) {
      const behind = this.#level - this.cost / share.weight - share.had(now, this.cost);
      if (behind > 0) share.#had += behind;
    }
  }

  /** Nothing is lost if it is forgotten: it is not ahead of the others. */
  isLevel(now: number): boolean {
    return this.idle && this.parent !== undefined && this.had(now, 0) <= this.parent.#level;
  }
}

/** ms; even a job that does nothing takes some, and unknown ones are alike */
const LEAST = 0.05;
/** How much a new duration counts. */
const EASE = 0.05;
