import type { EngineStore } from "./engine.js";
import type { ServiceStore } from "./service.js";

export type { EngineStore, StoreInfo } from "./engine.js";
export type { ServiceStore } from "./service.js";
export type { StoreTransaction } from "./transactions.js";
export type { Wakeup } from "./wakeup.js";

/**
 * The store port is two ports, by noun: the engine, and what a service keeps beside it. A store may implement the first alone
 * (`pairStores` makes it whole). Rules that hold for every verb:
 * - it is one atomic step, in batches, and time is decided inside by the store's clock;
 * - expected results are values: a lost lease, a taken key, a missing job are never exceptions;
 * - it survives an answer that was lost: repeating it changes nothing more and answers the same;
 * - nothing of the store's own (connections, bounds, tables) shows through.
 *
 * The memory store is the specification; `packages/pawl/conformance/` is the same thing as tests.
 */
export type Store = EngineStore & ServiceStore;

/** Whose jobs a call may see and change. */
export type Scope = { readonly tenant: string } | "everyone";
