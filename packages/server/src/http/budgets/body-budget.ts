/** Whose a body is. */
export interface BodyCaller {
  /** the credential; its bodies wait for one another and for nobody else's */
  readonly caller: string;
  /** whose share of the memory it is: a tenant has one share, however many keys it has */
  readonly owner: string;
}

/** A body that is being read. */
export interface Upload extends BodyCaller {
  /** stop reading until `resume` is called */
  pause(): void;
  resume(): void;
  /** the memory is needed for others: the body is lost */
  refuse(): void;
}

export interface BudgetLimits {
  /** bytes of all bodies together */
  readonly overall: number;
  /** bytes of one caller's bodies, beside its oldest one */
  readonly perCaller: number;
}

interface CallerUploads {
  readonly owner: string;
  /** bytes by body, the oldest body first */
  readonly uploads: Map<Upload, number>;
  bytes: number;
}

/**
 * The memory of bodies that are being read, counted as their bytes arrive.
 *
 * A caller that has too many bytes of unfinished bodies is read one body at a time: its oldest goes on, the others pause. So
 * nobody waits for another caller. When all callers together have too many, the youngest body of the owner that has most is
 * refused. So an owner that has no more than its fair share (`overall` divided by the owners that send) loses nothing.
 */
export class BodyBudget {
  readonly #callers = new Map<string, CallerUploads>();
  #bytes = 0;

  constructor(private readonly limits: BudgetLimits) {}

  get bytes(): number {
    return this.#bytes;
  }

  /** Counts bytes that have arrived. The upload may be paused or refused by it. */
  add(upload: Upload, bytes: number): void {
    const caller = this.#callerOf(upload);
    caller.uploads.set(upload, (caller.uploads.get(upload) ?? 0) + bytes);
    caller.bytes += bytes;
    this.#bytes += bytes;
    while (this.#bytes > this.limits.overall) this.#makeRoom(upload.owner);
    if (caller.uploads.has(upload) && !this.#mayGoOn(caller, upload)) upload.pause();
  }

  /** The body was used, refused or cut off. Of one that is not counted: nothing happens. */
  remove(upload: Upload): void {
    const caller = this.#callers.get(upload.caller);
    const bytes = caller?.uploads.get(upload);
    if (caller === undefined || bytes === undefined) return;
    caller.uploads.delete(upload);
    caller.bytes -= bytes;
    this.#bytes -= bytes;
    if (caller.uploads.size === 0) this.#callers.delete(upload.caller);
    for (const other of [...caller.uploads.keys()]) if (this.#mayGoOn(caller, other)) other.resume();
  }

  #callerOf({ caller: name, owner }: Upload): CallerUploads {
    let caller = this.#callers.get(name);
    if (caller === undefined) {
      caller = { owner, uploads: new Map(), bytes: 0 };
      this.#callers.set(name, caller);
    }
    return caller;
  }

  /** Were the oldest to pause too, bodies that have half of the bytes each would wait for one another. */
  #mayGoOn({ uploads, bytes }: CallerUploads, upload: Upload): boolean {
    const [oldest, ofOldest] = uploads.entries().next().value as [Upload, number];
    return upload === oldest || bytes - ofOldest <= this.limits.perCaller;
  }

  #makeRoom(requester: string): void {
    const byOwner = new Map<string, number>();
    for (const { owner, bytes } of this.#callers.values()) byOwner.set(owner, (byOwner.get(owner) ?? 0) + bytes);
    let heaviest = requester;
    for (const [owner, bytes] of byOwner) if (bytes > (byOwner.get(heaviest) ?? 0)) heaviest = owner;
    let largest: CallerUploads | undefined;
    for (const caller of this.#callers.values()) if (caller.owner === heaviest && caller.bytes > (largest?.bytes ?? 0)) largest = caller;
    const youngest = [...(largest as CallerUploads).uploads.keys()].at(-1) as Upload;
    this.remove(youngest);
    youngest.refuse();
  }
}
