import type { StoreCapabilities } from "../store/port/engine.js";

/** The capabilities of a store that is reached through a service. */
export const SERVICE_CAPABILITIES: StoreCapabilities = { transactions: false, handoff: false, shared: true };
