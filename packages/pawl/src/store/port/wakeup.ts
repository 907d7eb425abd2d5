import type { JobId } from "../../core/jobs/id.js";
import type { Lane } from "../../core/jobs/lane.js";

export type Wakeup =
  /** `admittedSection`: jobs that waited at a limit key are in the admitted section of these lanes */
  | { readonly kind: "ready"; readonly lanes: readonly Lane[]; readonly admittedSection?: true }
  /** ms from now */
  | { readonly kind: "scheduled"; readonly dueIn: number }
  /** a schedule is to be looked at; ms from now */
  | { readonly kind: "tick"; readonly dueIn: number }
  /** a limit key is to be looked at; ms from now */
  | { readonly kind: "admit"; readonly dueIn: number }
  | { readonly kind: "intent" }
  | { readonly kind: "finished"; readonly jobs: readonly JobId[] }
  | { readonly kind: "lanes" }
  /** work may have come: look for it */
  | { readonly kind: "look" }
  /** somebody begins to watch, or goes on watching, what happens */
  | { readonly kind: "watch" }
  /** there is more to read of what happened */
  | { readonly kind: "events" };
