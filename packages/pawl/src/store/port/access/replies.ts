/**
 * What was answered to requests that carry an idempotency key, so that the same request again gets the same answer
 * and is not carried out twice.
 */
export interface ReplyStore {
  /**
   * Takes the key for one request, for `patience` ms: who has not answered by then is taken for dead. Again with the
   * same token is the same request.
   */
  begin(ref: ReplyRef, how: BeginReply): Promise<BeginReplyResult>;
  /** Keeps the answer for `keep` ms; `stale` if the key was taken for another request meanwhile. Again changes nothing. */
  finish(ref: ReplyRef, how: { readonly token: string; readonly reply: Reply; readonly keep: number }): Promise<"kept" | "stale">;
  /** Nothing was done: the key is free again. */
  abandon(ref: ReplyRef, token: string): Promise<void>;
}

/** Keys are the caller's own: another credential's are never seen. */
export interface ReplyRef {
  readonly tenant: string | undefined;
  readonly credential: string;
  readonly key: string;
}

export interface BeginReply {
  /** a uuid of this one request, chosen by whoever serves it */
  readonly token: string;
  /** of all that makes it the same request: method, path and body */
  readonly hash: string;
  /** ms */
  readonly patience: number;
}

export interface Reply {
  readonly status: number;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

export type BeginReplyResult =
  | { readonly kind: "begun" }
  /** the same request is being carried out; ms until it would be taken for dead */
  | { readonly kind: "in_flight"; readonly retryIn: number }
  | { readonly kind: "replied"; readonly reply: Reply }
  /** the key was used for another request */
  | { readonly kind: "different" };
