import { DEFAULTS } from "pawl";
import type { Environment } from "../secrets/secret.js";
import { Unfit } from "./kinds.js";
import { holdsPassword } from "./place.js";
import { type Problem, whereOf } from "./problem.js";
import { flagOf, type SettingName, type Settings } from "./settings.js";
import { isLoopback, withTls } from "./store-url.js";

/** What is known beside the values. */
export interface Origins {
  origin(name: SettingName): string | undefined;
  by(name: SettingName): "flag" | "environment" | "file" | undefined;
  readonly env: Environment;
}

/** A problem, and all the settings that it follows from. */
type Judgement = Problem & { readonly of: readonly SettingName[] };

/** What is wrong with settings taken together; those that are `unfit` by themselves would only be wrong once more. Pure. */
export function judge(settings: Settings, origins: Origins, unfit: ReadonlySet<SettingName>): readonly Problem[] {
  return [
    ...ofListening(settings, origins),
    ...ofCertificates(settings, origins),
    ...ofAudit(settings, origins),
    ...ofStore(settings, origins),
    ...ofWorker(settings, origins),
    ...ofNode(origins),
  ].filter(({ of }) => !of.some((name) => unfit.has(name)));
}

/** Whether it listens at all: for the API, or, where this process has none, for its health and metrics if somebody said where. */
export function listens({ roles }: Settings, { origin }: Pick<Origins, "origin">): boolean {
  return roles.includes("api") || origin("listen") !== undefined;
}

function* ofListening(settings: Settings, { origin }: Origins): Iterable<Judgement> {
  if (!listens(settings, { origin })) return;
  const { host } = settings.listen;
  if (settings.auth === "none" && !isLoopback(host)) {
    yield {
      of: ["roles", "listen", "auth"],
      where: whereOf({ origin }, "listen"),
      what: `${host} can be reached from other machines, and nobody would have to show a key`,
      help: `say ${flagOf("auth")} keys, or listen on 127.0.0.1`,
    };
  }
  if (settings.trustedProxies?.some(({ prefix }) => prefix === 0)) {
    yield {
      of: ["roles", "trustedProxies"],
      where: whereOf({ origin }, "trustedProxies"),
      what: "everybody would be believed to be a proxy, and could come from any address they like",
      help: "name the networks that the proxies are in",
    };
  }
  if (settings.auth === "keys" && settings["keys.pepper"] === undefined) {
    yield {
      of: ["roles", "auth", "keys.pepper"],
      where: whereOf({ origin }, "auth"),
      what: "keys are hashed with a secret, and there is none",
      help: `give it with ${flagOf("keys.pepper")} file:PATH, the same for every process`,
    };
  }
}

function* ofWorker(
  { "worker.concurrency": slots = DEFAULTS.worker.concurrency, "worker.mostLost": mostLost = 1 }: Settings,
  { origin }: Origins,
): Iterable<Judgement> {
  if (mostLost <= slots) return;
  yield {
    of: ["worker.concurrency", "worker.mostLost"],
    where: whereOf({ origin }, "worker.mostLost"),
    what: `there are ${slots} handlers at a time, so ${mostLost} can never be lost`,
    help: `say ${slots} or less, or leave it out`,
  };
}

function needing({ origin }: Origins) {
  return (name: SettingName, other: SettingName): Judgement => ({
    of: [name, other],
    where: whereOf({ origin }, name),
    what: `it needs ${other}`,
    help: `give that with ${flagOf(other)}`,
  });
}

function* ofAudit(settings: Settings, origins: Origins): Iterable<Judgement> {
  const needs = needing(origins);
  if (settings["audit.anchors"] !== undefined && settings["audit.key"] === undefined) yield needs("audit.anchors", "audit.key");
  if (settings["audit.key"] !== undefined && settings["audit.anchors"] === undefined) yield needs("audit.key", "audit.anchors");
}

function* ofCertificates(settings: Settings, origins: Origins): Iterable<Judgement> {
  const needs = needing(origins);
  if (settings["tls.cert"] !== undefined && settings["tls.key"] === undefined) yield needs("tls.cert", "tls.key");
  if (settings["tls.key"] !== undefined && settings["tls.cert"] === undefined) yield needs("tls.key", "tls.cert");
  if (settings["tls.clientCa"] !== undefined && settings["tls.cert"] === undefined) yield needs("tls.clientCa", "tls.cert");
}

const OF_POSTGRES = ["store.password", "store.tls", "store.ca", "store.listenUrl", "store.schema", "store.connections"] as const;

function* ofStore(settings: Settings, { origin, by }: Origins): Iterable<Judgement> {
  const place = settings["store.url"];
  if (place.kind === "folder" || place.kind === "memory") {
    for (const name of OF_POSTGRES.filter((one) => settings[one] !== undefined)) {
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
      if (!(error instanceof Unfit)) throw error;
      yield { of, where, what: error.what, help: error.help };
    }
  }
}

function* ofNode({ env }: Origins): Iterable<Judgement> {
  if (env.NODE_TLS_REJECT_UNAUTHORIZED === "0") {
    yield {
      of: [],
      where: "NODE_TLS_REJECT_UNAUTHORIZED",
      what: "with it Node verifies nobody",
      help: "unset it, and give the certificates with --store-ca",
    };
  }
}
