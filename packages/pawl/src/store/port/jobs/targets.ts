import type { OpenTarget, TargetRecord, TargetRef } from "../../../core/access/push-target.js";
import type { Scope } from "../index.js";

/**
 * Targets, where jobs are pushed to. Whatever changes them also changes the version of `LaneStore.live`, by which those who
 * deliver hear of it.
 */
export interface TargetStore {
  /**
   * (nothing) or a target → the target as given. One that is there keeps its secrets and is wanted again; the secret is for
   * one that is new. The same again changes nothing. `full`: its tenant, or the store, has as many as there may be.
   */
  put(target: NewTarget): Promise<TargetPut>;
  get(scope: Scope, ref: TargetRef): Promise<TargetRecord | undefined>;
  /** by tenant and task; `after` is the one the last page ended with */
  list(scope: Scope, page: { readonly limit: number; readonly after?: TargetRef }): Promise<readonly TargetRecord[]>;
  /**
   * Gives it a new secret. The one before is good for `overlap` ms more, and any older one no longer. Again with the same
   * secret changes nothing.
   */
  rotate(ref: TargetRef, how: { readonly secret: string; readonly keepOldFor: number }): Promise<TargetRecord | undefined>;
  /** Whether it was there. */
  delete(ref: TargetRef): Promise<boolean>;
  /** It wants no more, if it is still at that URL. */
  gone(ref: TargetRef, url: string): Promise<void>;
  /** Those that want jobs, with their secrets, for those who deliver. */
  open(limit: number): Promise<OpenTargets>;
}

export interface NewTarget extends TargetRef {
  readonly url: string;
  readonly concurrency: number;
  readonly timeout: number;
  readonly secret: string;
}

export type TargetPut = { readonly kind: "created" | "kept"; readonly target: TargetRecord } | { readonly kind: "full"; readonly most: number };

export interface OpenTargets {
  readonly targets: readonly OpenTarget[];
  /** the store's clock */
  readonly now: number;
}
