import { type BreakerView, type Depths, type LiveWorkerView, type Pawl, STATES, type State } from "pawl";
import { Numbers, type Sample } from "./series.js";

/** What metrics need of a pawl. */
export type Measured = Pick<Pawl, "on" | "depths" | "breakers" | "workers" | "localWorkers">;

/** What the store said when it was last read. */
interface Seen {
  readonly depths: Depths;
  readonly breakers: readonly BreakerView[];
  readonly workers: readonly LiveWorkerView[];
}

const MOST_BREAKERS = 1_000;
/** Queues and tasks with numbers of their own, those with most jobs first: the others are one. */
const MOST_ROWS = 300;

/** What the store knows, read when somebody asks, at most once per `fresh` ms, however many ask. */
export class StoreGauges {
  readonly #deaths = new Numbers(["queue", "task"]);
  readonly #dead = new Map<string, number>();
  #seen: Seen | undefined;
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;
  /** the read that goes on was waited for in vain: nobody waits for it again */
  #late = false;

  constructor(
    private readonly pawl: Measured,
    private readonly fresh: number,
    private readonly patience: number,
    private readonly tenants: () => readonly string[],
  ) {}

  /** Never fails and never waits for long: what cannot be read is not exposed, and `up` says so. */
  async refresh(): Promise<void> {
    if (performance.now() - this.#readAt < this.fresh) return;
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
      this.#late = false;
    });
    if (this.#late) return;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(() => {
        this.#seen = undefined;
        this.#late = true;
        resolve();
      }, this.patience);
    });
    await Promise.race([this.#reading, late]);
    clearTimeout(timer);
  }

  *up(): Generator<Sample> {
    yield { labels: {}, value: this.#seen === undefined ? 0 : 1 };
  }

  *jobs(): Generator<Sample> {
    for (const { queue, task, counts } of this.#seen?.depths.rows ?? [])
      for (const state of STATES) yield { labels: { queue, task, state }, value: counts[state] };
  }

  *parked(): Generator<Sample> {
    for (const [reason, value] of Object.entries(this.#seen?.depths.parked ?? {})) yield { labels: { reason }, value };
  }

  *oldest(): Generator<Sample> {
    for (const { queue, band, longest } of this.#seen?.depths.waits ?? []) yield { labels: { queue, band }, value: longest / 1_000 };
  }

  deaths(): Iterable<Sample> {
    return this.#seen === undefined ? [] : this.#deaths.samples();
  }

  *paused(kind: "queue" | "task"): Generator<Sample> {
    for (const ref of this.#seen?.depths.paused ?? []) if (ref.kind === kind) yield { labels: { [kind]: ref.name }, value: 1 };
  }

  breakers(): Iterable<Sample> {
    const numbers = new Numbers(["task", "state"]);
    for (const { task, state } of this.#seen?.breakers ?? []) if (state !== "closed") numbers.add(1, task, state);
    return numbers.samples();
  }

  *workers(): Generator<Sample> {
    if (this.#seen !== undefined) yield { labels: {}, value: this.#seen.workers.length };
  }

  /** Of one that does not say how full it is, its slots alone. */
  *slots(): Generator<Sample> {
    if (this.#seen === undefined) return;
    const { workers } = this.#seen;
    const busy = workers.reduce((sum, { slots }) => sum + (slots?.inUse ?? 0), 0);
    yield { labels: { state: "free" }, value: workers.reduce((sum, { concurrency }) => sum + concurrency, 0) - busy };
    yield { labels: { state: "busy" }, value: busy };
  }

  *tenantDepths(): Generator<Sample> {
    for (const [tenant, value] of Object.entries(this.#seen?.depths.tenants ?? {})) yield { labels: { tenant }, value };
  }

  async #read(): Promise<void> {
    try {
      const [depths, { breakers }, workers] = await Promise.all([
        this.pawl.depths({ tenants: this.tenants() }),
        this.pawl.breakers.list({}, { limit: MOST_BREAKERS }),
        this.pawl.workers(),
      ]);
      this.#seen = { depths: { ...depths, rows: bounded(depths.rows) }, breakers, workers };
      this.#countDeaths(this.#seen.depths);
      this.#readAt = performance.now();
    } catch {
      this.#seen = undefined;
    }
  }

  /** Jobs die in many ways, not all of which have a witness here: that there are more of them shows all the same. */
  #countDeaths({ rows }: Depths): void {
    for (const { queue, task, counts } of rows) {
      const key = `${queue}\u0001${task}`;
      this.#deaths.add(Math.max(0, counts.dead - (this.#dead.get(key) ?? counts.dead)), queue, task);
      this.#dead.set(key, counts.dead);
    }
  }
}

function bounded(rows: Depths["rows"]): Depths["rows"] {
  if (rows.length <= MOST_ROWS) return rows;
  const size = ({ counts }: Depths["rows"][number]) => STATES.reduce((sum, state) => sum + counts[state], 0);
  const sorted = [...rows].sort((a, b) => size(b) - size(a));
  const rest = sorted.slice(MOST_ROWS);
  const sum = (state: State) => rest.reduce((total, { counts }) => total + counts[state], 0);
  const counts = Object.fromEntries(STATES.map((state) => [state, sum(state)])) as Depths["rows"][number]["counts"];
  return [...sorted.slice(0, MOST_ROWS), { queue: "other", task: "other", counts }];
}
