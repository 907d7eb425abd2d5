import type { Report } from "../contract/report.js";
import type { Machine } from "./machine.js";

/** A report as it lies in `results/<scenario>.json`: with when and on what it was made. */
export interface SavedReport extends Report {
  /** ISO 8601 */
  readonly date: string;
  readonly machine: Machine;
}
