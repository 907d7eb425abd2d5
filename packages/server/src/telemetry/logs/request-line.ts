import type { RequestFacts } from "../../http/request/request-facts.js";
import type { Level } from "./event-phrases.js";
import { safeText } from "./safe-text.js";

/** Probes come every few seconds from every load balancer, and are worth a line when they hear no. */
const PROBES: ReadonlySet<string | undefined> = new Set(["/livez", "/readyz"]);

export const REQUEST_EVENT = "http.request";
/** fields that the text of the line says, too */
export const REQUEST_TEXT_FIELDS: readonly string[] = ["method", "path", "status", "code"];

export function levelOf({ path, status = 0 }: RequestFacts): Level {
  return PROBES.has(path) && status < 300 ? "debug" : "info";
}

/** A request as a line of JSON: made by hand, since there is one for each, and all that others wrote in it is known here. */
export function requestLine(facts: RequestFacts): string {
  const { request, method, route, path, address, caller, tenant, status, code, duration, received, sent } = facts;
  const shownPath = safeField(path);
  const what = method === undefined ? "a connection" : `${method} ${shownPath}`;
  return `${JSON.stringify({
    level: levelOf(facts),
    time: new Date(),
    event: REQUEST_EVENT,
    requestId: request,
    method,
    route,
    path: shownPath,
    status,
    code,
    caller: safeField(caller),
    tenant: safeField(tenant),
    address,
    ms: Math.round(duration * 10) / 10,
    received,
    sent,
    msg: `${what}: ${status ?? "the caller went away"}${code === undefined ? "" : ` ${code}`}`,
  })}\n`;
}

/** Nothing of this is unsafe, nor part of what looks like a secret. Most of what is shown is such, and looking for more takes longer. */
const PLAIN = /^(key:)?[\w./%~-]*$/;
const LIKE_A_SECRET = /pawl_|whsec_/;

function safeField(text: string | undefined): string | undefined {
  return text === undefined || (PLAIN.test(text) && !LIKE_A_SECRET.test(text)) ? text : safeText(text);
}
