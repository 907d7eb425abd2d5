/** `pawl/testing`: time that moves when a test says so, and stores that fail when a test says so. */
// biome-ignore-all assist/source/organizeImports: grouped by hand

/** Opens a Pawl in memory whose time you move. */
export { openTest } from "./testing/open.js";
/** A Pawl of a test: time, runs until idle, faults. */
export type { TestPawl } from "./testing/open.js";
/** Options of `openTest`. */
export type { TestOptions } from "./testing/open.js";
/** A clock that stands until it is moved. */
export { virtualClock } from "./testing/clock.js";
/** A clock that stands until it is moved. */
export type { VirtualClock } from "./testing/clock.js";
/** Where a virtual clock starts, and its seed. */
export type { VirtualClockOptions } from "./testing/clock.js";
/** A store whose calls fail as planned. */
export { faultyStore } from "./testing/faulty.js";
/** The planned fault of one call of a store. */
export type { Fault } from "./testing/faulty.js";
/** Decides, before every call, whether and how it fails. */
export type { FaultPlan } from "./testing/faulty.js";
