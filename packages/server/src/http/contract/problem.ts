import Type from "typebox";
import { openObject, optional } from "./schemas.js";

/** What every error is answered with: RFC 9457, with a code that stays and never a stack or a statement. */
export interface ProblemDetails {
  /** the page that explains the code: `/v1/docs/errors/{code}` */
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly code: string;
  /** what happened, to what, and what to do */
  readonly detail: string;
  /** the same id is in the header and in the log */
  readonly requestId?: string;
  /** of the field that is wrong: a JSON pointer into the body, or the name of a parameter */
  readonly pointer?: string;
  /** what the message is filled with, for programs */
  readonly details?: Readonly<Record<string, string | number | boolean | undefined>>;
}

export const ProblemShape = openObject<ProblemDetails>(
  {
    type: Type.String({ format: "uri-reference" }),
    title: Type.String(),
    status: Type.Integer(),
    code: Type.String(),
    detail: Type.String(),
    requestId: optional(Type.String()),
    pointer: optional(Type.String()),
    details: optional(Type.Object({})),
  },
  "An error. `code` is stable: switch on it.",
);
