import type { Store } from "../port/index.js";

type PortVerb = (...args: never[]) => Promise<unknown>;
type IsNoun<Member> = Member extends (...args: never[]) => unknown
  ? false
  : Member extends { readonly [V in keyof Member]: PortVerb | readonly unknown[] }
    ? true
    : false;
/** The nouns of the port: what holds verbs, and perhaps lists. */
type StoreNoun = { [K in keyof Store]-?: IsNoun<Store[K]> extends true ? K : never }[keyof Store];
/** "jobs.enqueue", "leases.settle" … */
export type Operation =
  | { [N in StoreNoun]: `${N}.${VerbOf<Store[N]>}` }[StoreNoun]
  /** a step of the duty of that name */
  | `duties.${string}`
  | "transactions.run";
type VerbOf<Noun> = { [V in keyof Noun]: Noun[V] extends PortVerb ? V : never }[keyof Noun] & string;

/** Makes the call, before, after or instead of which it may do something of its own. */
export type CallWrapper = <T>(operation: Operation, call: () => Promise<T>) => Promise<T>;

/**
 * Members that are no nouns: their calls are no operations. A member of the port that is neither a noun nor a row here does not
 * compile, nor does a row for a noun.
 */
const NOT_NOUNS: Readonly<Record<Exclude<keyof Store, StoreNoun>, true>> = {
  engine: true,
  onWakeup: true,
  sendWakeup: true,
  receivesWakeups: true,
  renewer: true,
  handoff: true,
  transactions: true,
  close: true,
};

/** A store whose every operation goes through `wrapper`. The verbs are read off the store: a new one needs nothing here. */
export function wrapStore(store: Store, wrapper: CallWrapper): Store {
  const wrapped: Record<string, unknown> = {};
  const { transactions } = store;
  for (const [noun, verbs] of Object.entries(store)) if (!(noun in NOT_NOUNS)) wrapped[noun] = wrapNoun(noun, verbs as StoreVerbs, wrapper);
  return {
    ...store,
    ...(wrapped as Pick<Store, StoreNoun>),
    get engine() {
      return store.engine;
    },
    onWakeup: (listener) => store.onWakeup(listener),
    sendWakeup: (wakeup) => store.sendWakeup(wakeup),
    receivesWakeups: () => store.receivesWakeups(),
    ...(transactions === undefined
      ? {}
      : { transactions: { join: (tx) => transactions.join(tx), run: (work) => wrapper("transactions.run", () => transactions.run(work)) } }),
    ...(store.renewer === undefined ? {} : { renewer: store.renewer.bind(store) }),
    close: () => store.close(),
  };
}

type StoreVerbs = Readonly<Record<string, ((...args: readonly unknown[]) => Promise<unknown>) | readonly unknown[]>>;

function wrapNoun(noun: string, verbs: StoreVerbs, wrapper: CallWrapper): StoreVerbs {
  return Object.fromEntries(
    Object.entries(verbs).map(([verb, own]) => {
      if (typeof own !== "function") return [verb, own];
      const operation = (args: readonly unknown[]) => `${noun}.${noun === "duties" && verb === "run" ? args[0] : verb}` as Operation;
      // Looked up at each call: tests replace verbs of the store they wrapped.
      return [verb, (...args: readonly unknown[]) => wrapper(operation(args), async () => callNow(verbs[verb], args))];
    }),
  );
}

function callNow(verb: StoreVerbs[string] | undefined, args: readonly unknown[]): Promise<unknown> | undefined {
  return typeof verb === "function" ? verb(...args) : undefined;
}
