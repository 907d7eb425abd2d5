import { BOUNDS } from "../values/bounds.js";
import { checkKeys, checkObject, invalid, show } from "../values/option.js";

/** A W3C trace context: the trace that a job belongs to, and the span that asked for it. Stored with the job as it is. */
export interface TraceContext {
  readonly traceparent: string;
  readonly tracestate?: string;
}

/** Version, trace, span, flags. A trace or a span of nothing but zeros is none, and version ff never will be. */
const PARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;
/** What others add to it is theirs to read: here it is only kept from growing, and from being two headers. */
const STATE = new RegExp(`^[\\x20-\\x7e]{1,${BOUNDS.tracestate}}$`);
const KEYS: ReadonlySet<string> = new Set(["traceparent", "tracestate"] satisfies readonly (keyof TraceContext)[]);

export function checkTrace(option: string, value: unknown): TraceContext {
  const { traceparent, tracestate } = checkObject(option, value) as TraceContext;
  checkKeys(value as object, KEYS, `${option}.`);
  if (typeof traceparent !== "string" || !PARENT.test(traceparent))
    throw invalid(
      `${option}.traceparent`,
      `${show(traceparent)} is not as W3C Trace Context has it: 00-<32 hex digits>-<16 hex digits>-<2 hex digits>`,
    );
  if (tracestate === undefined) return { traceparent };
  if (typeof tracestate !== "string" || !STATE.test(tracestate))
    throw invalid(`${option}.tracestate`, `${show(tracestate)} is not 1 to ${BOUNDS.tracestate} printable ASCII characters`);
  return { traceparent, tracestate };
}

/** What the headers of a request carry. One that is not as W3C has it is as good as none, as W3C has it too. */
export function traceOfHeaders(headers: Readonly<Record<string, string | readonly string[] | undefined>>): TraceContext | undefined {
  const { traceparent, tracestate } = headers;
  if (typeof traceparent !== "string" || !PARENT.test(traceparent)) return undefined;
  return typeof tracestate === "string" && STATE.test(tracestate) ? { traceparent, tracestate } : { traceparent };
}

/** Whether whoever began the trace records it. */
export function isSampled({ traceparent }: TraceContext): boolean {
  return (Number.parseInt(traceparent.slice(-2), 16) & 1) === 1;
}
