import { logTo, metricsOf } from "pawl-server/telemetry";
import type { Session, StoreLocation } from "../contract/system.ts";
import { connectWith, type Telemetry } from "./pawl.ts";

/** ms between scrapes: fifteen times as often as Prometheus does by default */
const SCRAPE = 1_000;

/** What a service has on: metrics that somebody scrapes, and a log at the level info. */
export const follow: NonNullable<Telemetry["follow"]> = (pawl) => {
  const metrics = metricsOf(pawl);
  setInterval(() => void metrics.text(), SCRAPE).unref();
  logTo({ level: "info", format: "json", write: () => {} }).follow(pawl);
};

export const connect = (location: StoreLocation): Promise<Session> => connectWith(location, {}, { follow });
