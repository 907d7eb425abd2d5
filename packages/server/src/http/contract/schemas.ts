import type { Page } from "pawl";
import { BOUNDS } from "pawl/service";
import Type, { type TProperties, type TSchema } from "typebox";

/** Schemas that routes share: names, times, durations, pages. */

/** As a request: closed, so that a field that does not exist is refused by name. */
export const closedObject = <P extends TProperties>(properties: P, about?: string) =>
  Type.Object(properties, { additionalProperties: false, ...(about === undefined ? {} : { description: about }) });

/** A schema for OpenAPI of a type that the library declares. A test on live answers holds the two together. */
export const as = <T>(schema: object) => Type.Unsafe<T>(schema as TSchema);

/** As an answer: it may grow, and clients must not mind fields they do not know. */
export const openObject = <T>(properties: TProperties, about?: string) =>
  as<T>(Type.Object(properties, about === undefined ? {} : { description: about }));

export const list = (item: TSchema, about?: string) => Type.Array(item, about === undefined ? {} : { description: about });
export const optional = Type.Optional;

/** A name in a URL, a log and a metric: nothing that needs escaping there. */
const NAME = "^[A-Za-z0-9._:-]{1,128}$";
const name = (about: string) => Type.String({ pattern: NAME, description: about });

export const TaskName = name("the name of a task");
export const QueueName = name("the name of a queue");
export const ScheduleName = name("the name of a schedule");
/** Marked, since it is checked against the credential wherever it stands in a request: whoever names a tenant uses this one. */
export const TenantName = Type.String({
  pattern: NAME,
  description: "a tenant; with a credential of one tenant it can be left out, and no other can be named",
  "x-names": "tenant",
});

export const JobId = Type.String({ maxLength: 200, description: "the id of a job" });
/** Free text of a bounded length: keys, tags, idempotency keys. The library says what it may hold. */
export const text = (maxLength: number, about: string) => Type.String({ minLength: 1, maxLength, description: about });

/** Types side by side, not `anyOf`: what is wrong with a value can then be said in one sentence. */
export const Duration = as<number | string>({
  type: ["integer", "string"],
  minimum: 0,
  maxLength: 32,
  description: 'ms, or a text such as "250ms", "30s", "5m", "24h", "7d"',
});
/** Time between two of many, or how many there are per time. */
export const Pace = as<number | string>({ ...Duration, description: 'time between two: ms, or a text such as "100ms"; or a rate such as "50/s"' });
export const Instant = as<number | string>({ type: ["number", "string"], maxLength: 64, description: "ISO 8601 with an offset, or ms since 1970" });
/** In the process a Date, which JSON writes so. */
export const Time = Type.String({ format: "date-time" });
/** Why somebody changed something: for events, histories and the audit log. */
export const REASON = { reason: optional(text(BOUNDS.reason, "why")) };
export const Anything = as<unknown>({ description: "any JSON" });

export const Limit = Type.Integer({ minimum: 1, maximum: 1_000, description: "how many on a page; 50 unless set" });

/** The query of every list. */
export const PAGE = { limit: optional(Limit), cursor: optional(text(4_096, "the `next` of the page before; left out: the first page")) };

/** The answer of every list. Without `next` it ends here. */
export const pageOf = <T>(item: TSchema) =>
  openObject<Page<T>>({
    items: list(item),
    next: optional(Type.String({ description: "the `cursor` of the following page; left out: there is none" })),
  });
