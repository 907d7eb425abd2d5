import type { Pawl } from "pawl";
import { ConfigError, reasonOf } from "../config/problem.js";
import type { Configuration } from "../config/read.js";
import type { Secrets } from "../secrets/secrets.js";
import { AnchorWriter } from "./anchor-writer.js";

/** The writer of anchors that the settings ask for, at work. */
export async function anchorsOf(
  { settings, origin }: Configuration,
  secrets: Secrets,
  pawl: Pawl,
  onTrouble: (error: unknown) => void,
): Promise<AnchorWriter | undefined> {
  const { "audit.anchors": file, "audit.key": reference } = settings;
  if (file === undefined || reference === undefined) return undefined;
  const key = await secrets.read("audit.key", reference);
  try {
    const writer = new AnchorWriter(pawl.audit, { file, key, onTrouble });
    await writer.start();
    return writer;
  } catch (error) {
    const where = origin("audit.anchors") ?? "audit.anchors";
    throw new ConfigError([{ where, what: reasonOf(error), help: "give a file that can be written to, and the Ed25519 key it was begun with" }]);
  }
}
