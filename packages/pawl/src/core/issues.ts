import type { StandardSchemaV1 } from "@standard-schema/spec";

const MOST_ISSUES = 5;

/** What a schema has against a value, in its own words and with the path: "cart.id: expected string". */
export function describeIssues(issues: readonly StandardSchemaV1.Issue[]): string {
  const shown = issues.slice(0, MOST_ISSUES).map(({ message, path }) => {
    const at = (path ?? []).map((part) => String(typeof part === "object" ? part.key : part)).join(".");
    return at === "" ? message : `${at}: ${message}`;
  });
  const more = issues.length - shown.length;
  return shown.join("; ") + (more > 0 ? `; and ${more} more` : "");
}
