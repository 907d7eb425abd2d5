import { JOB_STATES, type JobState, type Pawl } from "pawl";
import { type Backlog, type BreakerView, type LiveWorkerView, serviceOf } from "pawl/service";
import { LabelledNumbers, type Sample } from "./samples.js";

/** What the store said when it was last read. */
interface StoreSnapshot {
  readonly depths: Backlog;
  readonly breakers: readonly BreakerView[];
  readonly workers: readonly LiveWorkerView[];
}

const MAX_BREAKERS = 1_000;
/** Queues and tasks with numbers of their own, those with most jobs first: the others are one. */
const MAX_ROWS = 300;

/** What the store knows, read when somebody asks, at most once per `fresh` ms, however many ask. */
export class StoreGauges {
  readonly #deaths = new LabelledNumbers(["queue", "task"]);
  readonly #dead = new Map<string, number>();
  #snapshot: StoreSnapshot | undefined;
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;
  /** the read that goes on was waited for in vain: nobody waits for it again */
  #isLate = false;

  constructor(
    private readonly pawl: Pawl,
    private readonly fresh: number,
    private readonly timeoutMs: number,
    private readonly tenants: () => readonly string[],
  ) {}

  /** Never fails and never waits for long: what cannot be read is not exposed, and `up` says so. */
  async refresh(): Promise<void> {
    if (performance.now() - this.#readAt < this.fresh) return;
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
      this.#isLate = false;
    });
    if (this.#isLate) return;
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<void>((resolve) => {
      timer = setTimeout(() => {
        this.#snapshot = undefined;
        this.#isLate = true;
        resolve();
      }, this.timeoutMs);
    });
    await Promise.race([this.#reading, timeout]);
    clearTimeout(timer);
  }

  *up(): Generator<Sample> {
    yield { labels: {}, value: this.#snapshot === undefined ? 0 : 1 };
  }

  *jobs(): Generator<Sample> {
    for (const { queue, task, counts } of this.#snapshot?.depths.rows ?? [])
      for (const state of JOB_STATES) yield { labels: { queue, task, state }, value: counts[state] };
  }

  *parked(): Generator<Sample> {
    for (const [reason, value] of Object.entries(this.#snapshot?.depths.parked ?? {})) yield { labels: { reason }, value };
  }

  *oldest(): Generator<Sample> {
    for (const { queue, priority, longest } of this.#snapshot?.depths.waits ?? []) yield { labels: { queue, priority }, value: longest / 1_000 };
  }

  deaths(): Iterable<Sample> {
    return this.#snapshot === undefined ? [] : this.#deaths.samples();
  }

  *paused(kind: "queue" | "task"): Generator<Sample> {
    for (const ref of this.#snapshot?.depths.paused ?? []) if (ref.kind === kind) yield { labels: { [kind]: ref.name }, value: 1 };
  }

  breakers(): Iterable<Sample> {
    const numbers = new LabelledNumbers(["task", "state"]);
    for (const { task, state } of this.#snapshot?.breakers ?? []) if (state !== "closed") numbers.add(1, task, state);
    return numbers.samples();
  }

  *workers(): Generator<Sample> {
    if (this.#snapshot !== undefined) yield { labels: {}, value: this.#snapshot.workers.length };
  }

  /** Of one that does not say how full it is, its slots alone. */
  *slots(): Generator<Sample> {
    if (this.#snapshot === undefined) return;
    const { workers } = this.#snapshot;
    const busy = workers.reduce((sum, { slots }) => sum + (slots?.inUse ?? 0), 0);
    yield { labels: { state: "free" }, value: workers.reduce((sum, { concurrency }) => sum + concurrency.total, 0) - busy };
    yield { labels: { state: "busy" }, value: busy };
  }

  *tenantDepths(): Generator<Sample> {
    for (const [tenant, value] of Object.entries(this.#snapshot?.depths.tenants ?? {})) yield { labels: { tenant }, value };
  }

  async #read(): Promise<void> {
    try {
      const [depths, { items: breakers }, { items: workers }] = await Promise.all([
        serviceOf(this.pawl).backlog({ tenants: this.tenants() }),
        this.pawl.breakers.list({}, { limit: MAX_BREAKERS }),
        this.pawl.workers.list(),
      ]);
      this.#snapshot = { depths: { ...depths, rows: bounded(depths.rows) }, breakers, workers };
      this.#countDeaths(this.#snapshot.depths);
      this.#readAt = performance.now();
    } catch {
      this.#snapshot = undefined;
    }
  }

  /** Jobs die in many ways, not all of which have a witness here: that there are more of them shows all the same. */
  #countDeaths({ rows }: Backlog): void {
    for (const { queue, task, counts } of rows) {
      const key = `${queue}\u0001${task}`;
      this.#deaths.add(Math.max(0, counts.dead - (this.#dead.get(key) ?? counts.dead)), queue, task);
      this.#dead.set(key, counts.dead);
    }
  }
}

function bounded(rows: Backlog["rows"]): Backlog["rows"] {
  if (rows.length <= MAX_ROWS) return rows;
  const size = ({ counts }: Backlog["rows"][number]) => JOB_STATES.reduce((sum, state) => sum + counts[state], 0);
  const sorted = [...rows].sort((a, b) => size(b) - size(a));
  const rest = sorted.slice(MAX_ROWS);
  const sum = (state: JobState) => rest.reduce((total, { counts }) => total + counts[state], 0);
  const counts = Object.fromEntries(JOB_STATES.map((state) => [state, sum(state)])) as Backlog["rows"][number]["counts"];
  return [...sorted.slice(0, MAX_ROWS), { queue: "other", task: "other", counts }];
}
