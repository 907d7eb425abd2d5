import type { Pawl } from "pawl";
import { serviceOf } from "pawl/service";
import { ConfigError, reasonOf, whereOf } from "../config/problem.js";
import type { Configuration } from "../config/read.js";
import type { Secrets } from "../secrets/secrets.js";
import { AnchorWriter, anchorKey } from "./anchor-writer.js";

/** The key that anchors are signed with, if the settings ask for any. */
export async function anchorKeyOf(configuration: Configuration, secrets: Secrets): Promise<string | undefined> {
  const { "audit.key": reference } = configuration.settings;
  if (reference === undefined) return undefined;
  const where = whereOf(configuration, "audit.key");
  const key = await secrets.read(where, reference);
  try {
    anchorKey(key);
    return key;
  } catch (error) {
    const help = "openssl genpkey -algorithm ed25519 makes one";
    throw new ConfigError([{ where, what: `what is kept there is no key: ${reasonOf(error)}`, help }]);
  }
}

/** The writer of anchors that the settings ask for, at work. */
export async function startAnchorWriter(
  { settings, origin }: Configuration,
  key: string | undefined,
  pawl: Pawl,
  onError: (error: unknown) => void,
): Promise<AnchorWriter | undefined> {
  const { "audit.anchors": file } = settings;
  if (file === undefined || key === undefined) return undefined;
  try {
    const writer = new AnchorWriter(serviceOf(pawl).audit, { file, key, onError });
    await writer.start();
    return writer;
  } catch (error) {
    const where = whereOf({ origin }, "audit.anchors");
    throw new ConfigError([{ where, what: reasonOf(error), help: "give a file that can be written to, and the Ed25519 key it was begun with" }]);
  }
}
