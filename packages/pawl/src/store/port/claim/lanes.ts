import type { Lane } from "../../../core/jobs/lane.js";
import type { PolicyKind, PolicyRef } from "../../../core/sharing/policy.js";

export interface LiveLanes {
  readonly lanes: readonly Lane[];
  readonly suspects: boolean;
  /** another one than before: policies or targets were changed, see `PolicyStore.list` and `TargetStore.open` */
  readonly version: string;
}

export interface LaneStore {
  /** The lanes with ready jobs, of these queues and tasks (undefined: any). Paused ones are left out. */
  live(queues: readonly string[] | undefined, tasks: readonly string[]): Promise<LiveLanes>;
  /** Stops claims from a whole queue, task or tenant, for every claim that begins after the answer. */
  pause(kind: PolicyKind, name: string, reason?: string): Promise<void>;
  resume(kind: PolicyKind, name: string, reason?: string): Promise<void>;
  paused(): Promise<readonly PolicyRef[]>;
}
