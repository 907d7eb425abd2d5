import { existsSync } from "node:fs";
import type { Pawl, Waiting } from "pawl";
import { audited } from "./audited.js";
import { CliError, EXIT, usage } from "./exit.js";
import type { OpenOptions, OpenTarget, TargetFlags } from "./session.js";

type Environment = Readonly<Record<string, string | undefined>>;

/** Somebody waits for an answer. */
const PATIENCE = "5s";
/** A command does one thing after the other. */
const CONNECTIONS = 4;

/**
 * Opens what a command is about: a folder, a database, or a server. It takes no part in maintenance, starts no worker,
 * and makes no store where there is none.
 */
export function targetsOf(env: Environment, folder: string): OpenTarget {
  return async (flags, options = {}) => {
    const given = flags.store ?? env.PAWL_STORE;
    if (given !== undefined && /^https?:\/\//i.test(given)) return openServer(given, env);
    if (given !== undefined) checkScheme(flags.store === undefined ? "PAWL_STORE" : "--store", given);
    return openStore(flags, options, env, folder);
  };
}

/** Here, since the configuration speaks of what a service may stand on; the rest of it may be a password. */
function checkScheme(where: string, given: string): void {
  const [, scheme] = /^([a-z][a-z0-9+.-]+):\/\//i.exec(given) ?? [];
  if (scheme === undefined || /^(postgres(ql)?|file)$/i.test(scheme)) return;
  throw usage(
    `${where}: ${scheme}:// is no store Pawl knows`,
    'give a folder ("./data"), "postgres://user@host/database", or a server ("https://host")',
  );
}

async function openServer(url: string, env: Environment): Promise<Pawl> {
  const { open } = await import("pawl");
  const key = env.PAWL_KEY;
  return open(url, key === undefined || key === "" ? {} : { key });
}

async function openStore(flags: TargetFlags, { migrate = false, onWaiting }: OpenOptions, env: Environment, folder: string): Promise<Pawl> {
  const [{ open }, { readConfiguration }, { storeTarget }, { Secrets }] = await Promise.all([
    import("pawl"),
    import("../config/read.js"),
    import("../serve/store.js"),
    import("../secrets/secrets.js"),
  ]);
  const configuration = await readConfiguration({
    flags: flags.store === undefined ? {} : { "store.url": flags.store },
    env,
    folder,
    ...(flags.config === undefined ? {} : { file: flags.config }),
  });
  const place = configuration.settings["store.url"];
  if (place.kind === "folder" && !migrate && !existsSync(place.folder)) {
    const help = "name one with --store or PAWL_STORE; pawl migrate makes one";
    throw new CliError(EXIT.failed, "store_missing", `there is no store in ${place.folder}`, help);
  }
  const { url, options } = await storeTarget(configuration, new Secrets(env));
  const pawl = await open(url, {
    ...options,
    postgres: { ...options.postgres, patience: PATIENCE, connections: CONNECTIONS },
    maintenance: false,
    migrate,
    ...(onWaiting === undefined ? {} : { onWaiting: (what) => onWaiting(inWords(what)) }),
  });
  return audited(pawl);
}

function inWords(what: Waiting): string {
  return what.for === "server" ? `waiting: ${what.error.message}` : `migrating ${what.migration}: ${what.moved.toLocaleString("en")} rows moved`;
}
