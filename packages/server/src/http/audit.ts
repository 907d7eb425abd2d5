/** What somebody did, or was not allowed to do. */
export interface AuditEntry {
  /** the name of the principal; undefined: nobody knows who it was */
  readonly who: string | undefined;
  /** whose log it belongs to; undefined: the service's own */
  readonly tenant: string | undefined;
  /** the id of the route, such as `jobs.cancel` */
  readonly action: string;
  /** to what: the names and ids of the request */
  readonly subject: Readonly<Record<string, string>>;
  readonly decision: "allowed" | "denied";
  /** of a denial: the code of the error */
  readonly reason?: string;
  /** of denials that are told together: how many, of which this is the last */
  readonly count?: number;
  readonly address: string;
  readonly request: string;
}

/** Where control actions and denials are told. If telling fails, the action does not happen. */
export interface Audit {
  record(entry: AuditEntry): Promise<void>;
}
