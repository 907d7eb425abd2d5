import { DEFAULTS } from "pawl/service";
import type { Environment } from "../secrets/secret.js";
import { InvalidSetting } from "./kinds.js";
import { type Problem, whereOf } from "./problem.js";
import { flagOf, type SettingName, type Settings } from "./settings.js";
import { holdsPassword } from "./store-location.js";
import { isLoopback, withTls } from "./store-url.js";

/** What is known beside the values. */
export interface SettingOrigins {
  origin(name: SettingName): string | undefined;
  by(name: SettingName): "flag" | "environment" | "file" | undefined;
  readonly env: Environment;
}

/** A problem, and all the settings that it follows from. */
type CombinationProblem = Problem & { readonly of: readonly SettingName[] };

/** What is wrong with settings taken together; those that are `invalid` by themselves would only be wrong once more. Pure. */
export function checkCombinations(settings: Settings, origins: SettingOrigins, invalid: ReadonlySet<SettingName>): readonly Problem[] {
  return [
    ...listenProblems(settings, origins),
    ...certificateProblems(settings, origins),
    ...auditProblems(settings, origins),
    ...storeProblems(settings, origins),
    ...workerProblems(settings, origins),
    ...nodeProblems(origins),
  ].filter(({ of }) => !of.some((name) => invalid.has(name)));
}

/** Whether it listens at all: for the API, or, where this process has none, for its health and metrics if somebody said where. */
export function listens({ components }: Settings, { origin }: Pick<SettingOrigins, "origin">): boolean {
  return components.includes("api") || origin("listen") !== undefined;
}

function* listenProblems(settings: Settings, { origin }: SettingOrigins): Iterable<CombinationProblem> {
  if (!listens(settings, { origin })) return;
  const { host } = settings.listen;
  if (settings.auth === "none" && !isLoopback(host)) {
    yield {
      of: ["components", "listen", "auth"],
      where: whereOf({ origin }, "listen"),
      what: `${host} can be reached from other machines, and nobody would have to show a key`,
      help: `say ${flagOf("auth")} keys, or listen on 127.0.0.1`,
    };
  }
  if (settings.trustedProxies?.some(({ prefix }) => prefix === 0)) {
    yield {
      of: ["components", "trustedProxies"],
      where: whereOf({ origin }, "trustedProxies"),
      what: "everybody would be believed to be a proxy, and could come from any address they like",
      help: "name the networks that the proxies are in",
    };
  }
  if (settings.auth === "keys" && settings["apiKeys.pepper"] === undefined) {
    yield {
      of: ["components", "auth", "apiKeys.pepper"],
      where: whereOf({ origin }, "auth"),
      what: "keys are hashed with a secret, and there is none",
      help: `give it with ${flagOf("apiKeys.pepper")} file:PATH, the same for every process`,
    };
  }
}

function* workerProblems(
  { "worker.concurrency": slots = DEFAULTS.worker.concurrency, "worker.mostLost": mostLost = 1 }: Settings,
  { origin }: SettingOrigins,
): Iterable<CombinationProblem> {
  if (mostLost <= slots) return;
  yield {
    of: ["worker.concurrency", "worker.mostLost"],
    where: whereOf({ origin }, "worker.mostLost"),
    what: `there are ${slots} handlers at a time, so ${mostLost} can never be lost`,
    help: `say ${slots} or less, or leave it out`,
  };
}

function requirements({ origin }: SettingOrigins) {
  return (name: SettingName, other: SettingName): CombinationProblem => ({
    of: [name, other],
    where: whereOf({ origin }, name),
    what: `it needs ${other}`,
    help: `give that with ${flagOf(other)}`,
  });
}

function* auditProblems(settings: Settings, origins: SettingOrigins): Iterable<CombinationProblem> {
  const requires = requirements(origins);
  if (settings["audit.anchors"] !== undefined && settings["audit.key"] === undefined) yield requires("audit.anchors", "audit.key");
  if (settings["audit.key"] !== undefined && settings["audit.anchors"] === undefined) yield requires("audit.key", "audit.anchors");
}

function* certificateProblems(settings: Settings, origins: SettingOrigins): Iterable<CombinationProblem> {
  const requires = requirements(origins);
  if (settings["tls.cert"] !== undefined && settings["tls.key"] === undefined) yield requires("tls.cert", "tls.key");
  if (settings["tls.key"] !== undefined && settings["tls.cert"] === undefined) yield requires("tls.key", "tls.cert");
  if (settings["tls.clientCa"] !== undefined && settings["tls.cert"] === undefined) yield requires("tls.clientCa", "tls.cert");
}

const POSTGRES_SETTINGS = ["store.password", "store.tls", "store.ca", "store.listenUrl", "store.schema", "store.connections"] as const;

function* storeProblems(settings: Settings, { origin, by }: SettingOrigins): Iterable<CombinationProblem> {
  const location = settings["store.url"];
  if (location.kind === "folder" || location.kind === "memory") {
    for (const name of POSTGRES_SETTINGS.filter((one) => settings[one] !== undefined)) {
      yield {
        of: ["store.url", name],
        where: whereOf({ origin }, name),
        what: "it is for a Postgres of yours, and the store is none",
        help: "leave it out, or say --store postgres://…",
      };
    }
    return;
  }
  for (const name of ["store.url", "store.listenUrl"] as const) {
    const one = settings[name];
    if (one?.kind !== "postgres") continue;
    const where = whereOf({ origin }, name);
    const of = [name, "store.tls", "store.ca"] as const;
    // The environment of a process is its own; its flags and files are read by others.
    if (holdsPassword(one.url) && by(name) !== "environment") {
      yield {
        of,
        where,
        what: "the URL holds a password",
        help: `take it out and say ${flagOf("store.password")} file:PATH (or env:NAME, command:…)`,
      };
    }
    try {
      withTls(one.url, { tls: settings["store.tls"], ca: settings["store.ca"] });
    } catch (error) {
      if (!(error instanceof InvalidSetting)) throw error;
      yield { of, where, what: error.what, help: error.help };
    }
  }
}

function* nodeProblems({ env }: SettingOrigins): Iterable<CombinationProblem> {
  if (env.NODE_TLS_REJECT_UNAUTHORIZED === "0") {
    yield {
      of: [],
      where: "NODE_TLS_REJECT_UNAUTHORIZED",
      what: "with it Node verifies nobody",
      help: "unset it, and give the certificates with --store-ca",
    };
  }
}
