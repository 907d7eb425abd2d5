import { existsSync } from "node:fs";
import type { Pawl } from "pawl";
import type { OpenWait } from "pawl/service";
import { auditActions } from "./access/audited-actions.js";
import { CliError, EXIT, usage } from "./exit.js";
import type { OpenTarget, OpenTargetOptions, StoreFlags } from "./session.js";

type TargetEnvironment = Readonly<Record<string, string | undefined>>;

/** Somebody waits for an answer. */
const STARTUP_WAIT = "5s";
/** A command does one thing after the other. */
const MAX_CONNECTIONS = 4;

/**
 * Opens what a command is about: a folder, a database, or a server. It takes no part in maintenance, starts no worker,
 * and makes no store where there is none.
 */
export function targetsOf(env: TargetEnvironment, folder: string): OpenTarget {
  return async (flags, options = {}) => {
    const store = flags.store ?? env.PAWL_STORE;
    if (store !== undefined && /^https?:\/\//i.test(store)) return openServer(store, env);
    if (store !== undefined) checkScheme(flags.store === undefined ? "PAWL_STORE" : "--store", store);
    return openStore(flags, options, env, folder);
  };
}

/** Here, since the configuration speaks of what a service may stand on; the rest of it may be a password. */
function checkScheme(where: string, store: string): void {
  const [, scheme] = /^([a-z][a-z0-9+.-]+):\/\//i.exec(store) ?? [];
  if (scheme === undefined || /^(postgres(ql)?|file)$/i.test(scheme)) return;
  throw usage(
    `${where}: ${scheme}:// is no store Pawl knows`,
    'give a folder ("./data"), "postgres://user@host/database", or a server ("https://host")',
  );
}

async function openServer(url: string, env: TargetEnvironment): Promise<Pawl> {
  const { open } = await import("pawl");
  const key = env.PAWL_API_KEY;
  return open(url, key === undefined || key === "" ? {} : { apiKey: key });
}

async function openStore(
  flags: StoreFlags,
  { migrate = false, onWaiting }: OpenTargetOptions,
  env: TargetEnvironment,
  folder: string,
): Promise<Pawl> {
  const [{ open }, { readConfiguration }, { storeToOpen }, { Secrets }] = await Promise.all([
    import("pawl"),
    import("../config/read.js"),
    import("../run/open-store.js"),
    import("../secrets/secrets.js"),
  ]);
  const configuration = await readConfiguration({
    flags: flags.store === undefined ? {} : { "store.url": flags.store },
    env,
    folder,
    ...(flags.config === undefined ? {} : { file: flags.config }),
  });
  const location = configuration.settings["store.url"];
  if (location.kind === "folder" && !migrate && !existsSync(location.folder)) {
    const help = "name one with --store or PAWL_STORE; pawl migrate makes one";
    throw new CliError(EXIT.failed, "store_missing", `there is no store in ${location.folder}`, help);
  }
  const { url, options } = await storeToOpen(configuration, new Secrets(env));
  const pawl = await open(url, {
    ...options,
    postgres: { ...options.postgres, startupWait: STARTUP_WAIT, connections: MAX_CONNECTIONS },
    maintenance: false,
    migrate,
    ...(onWaiting === undefined ? {} : { onWaiting: (what) => onWaiting(waitingText(what)) }),
  });
  return auditActions(pawl);
}

function waitingText(what: OpenWait): string {
  return what.for === "server" ? `waiting: ${what.error.message}` : `migrating ${what.migration}: ${what.moved.toLocaleString("en")} rows moved`;
}
