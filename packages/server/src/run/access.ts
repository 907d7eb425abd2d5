import type { Pawl } from "pawl";
import { serviceOf } from "pawl/service";
import { keyAccess } from "../access/key-access.js";
import type { Settings } from "../config/settings.js";
import { type Access, OPEN_ACCESS } from "../http/access/principal.js";
import { withClientCertificates } from "../tls/client-identity.js";

/** Who may call, as the settings say it. */
export function accessOf(settings: Settings, pawl: Pawl): Access {
  const access = settings.auth === "keys" ? keyAccess(serviceOf(pawl).apiKeys) : OPEN_ACCESS;
  return settings["tls.clientCa"] === undefined ? access : withClientCertificates(access);
}
