/** A live worker, and the version of Pawl it runs; undefined: one from before they said so. */
export interface LiveVersion {
  readonly name: string;
  readonly version?: string;
}

/** Who runs what, where it is not all the same; this process counts only where there are others. */
export function oddVersions(workers: readonly LiveVersion[], own: string): string | undefined {
  const byVersion = new Map<string, string[]>();
  for (const { name, version = "an older one" } of workers) byVersion.set(version, [...(byVersion.get(version) ?? []), name]);
  if (byVersion.size > 0 && !byVersion.has(own)) byVersion.set(own, ["this process"]);
  if (byVersion.size < 2) return undefined;
  return [...byVersion].map(([version, names]) => `${version} (${listed(names)})`).join(", ");
}

const SHOWN = 3;

function listed(names: readonly string[]): string {
  return names.length <= SHOWN ? names.join(", ") : `${names.slice(0, SHOWN).join(", ")} and ${names.length - SHOWN} more`;
}
