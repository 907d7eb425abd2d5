import { isPawlError, type PawlError } from "pawl";
import { errorTable, pawlError } from "pawl/service";
import type { ProblemDetails } from "./contract/problem.js";
import { pointerOf } from "./request/pointer.js";
import { STATUS } from "./status.js";

/** What went wrong with the service or its store is for its operator: a caller learns the code and no more. */
function isPrivate(status: number): boolean {
  return status >= 500;
}

/** What its operator has to hear of. That requests are turned away while the service stops is what was asked of it. */
export function isFault({ code }: PawlError): boolean {
  return isPrivate(STATUS[code]) && code !== "service_stopping";
}

/** An error as callers see it. What is not an error of Pawl is a fault, and tells nothing. */
export function problemOf(error: unknown, request?: string): ProblemDetails {
  const failure = asPawlError(error);
  const { code, message, details } = failure;
  const status = STATUS[code];
  const pointer = pointerOf(failure);
  return {
    type: `/v1/docs/errors/${code}`,
    title: code.replaceAll("_", " "),
    status,
    code,
    detail: isPrivate(status) ? withoutDetails(code) : message,
    ...(request === undefined ? {} : { requestId: request }),
    ...(pointer === undefined ? {} : { pointer }),
    ...(isPrivate(status) || Object.keys(details).length === 0 ? {} : { details }),
  };
}

export function asPawlError(error: unknown): PawlError {
  // It is this process that was closed: to the caller, who has closed nothing, the service is stopping.
  if (isPawlError(error, "closed")) return pawlError("service_stopping", {}, error);
  return isPawlError(error) ? error : (frameworkError(error) ?? pawlError("internal", {}, error));
}

/** Seconds after which it is worth trying again, of what passes by itself. */
export function retryAfterOf({ code, details }: PawlError): number | undefined {
  if (typeof details.retryAfter === "number") return Math.max(1, Math.ceil(details.retryAfter / 1000));
  return STATUS[code] === 503 || code === "idempotency_in_flight" ? 1 : undefined;
}

/** The first part of the message, up to what it would be filled with, and the help. */
function withoutDetails(code: PawlError["code"]): string {
  const [message, help] = errorTable[code];
  const summary = message.replace(/( at)? \{store\}/, "").replace(/:? \{\w+\}.*$/, "");
  // An option in braces, such as `apiKeys: { pepper }`, is no detail.
  return /\{\w+\}/.test(help) ? `${summary}.` : `${summary}; ${help}.`;
}

/** What Fastify says of requests it could not make sense of. */
function frameworkError(error: unknown): PawlError | undefined {
  const { code, statusCode } = error as { code?: unknown; statusCode?: unknown };
  if (typeof code !== "string" || !code.startsWith("FST_") || typeof statusCode !== "number" || statusCode >= 500) return undefined;
  if (statusCode === 415) return pawlError("media_unsupported", { media: "no type" }, error);
  return pawlError(
    "request_malformed",
    { reason: code === "FST_ERR_BAD_URL" ? "its path cannot be decoded" : "its headers contradict its body" },
    error,
  );
}
