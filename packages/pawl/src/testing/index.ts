/** `pawl/testing`: time that moves when you say so, and stores that fail when you say so. */
export { type VirtualClock, type VirtualClockOptions, virtualClock } from "./clock.js";
export { type Fault, type FaultPlan, faultyStore } from "./faulty.js";
export { openTest, type TestOptions, type TestPawl } from "./open.js";
