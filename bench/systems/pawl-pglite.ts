import type { Session, StoreLocation } from "../contract/system.ts";
import { connectWith } from "./pawl.ts";

export const connect = (location: StoreLocation): Promise<Session> => connectWith(location, { engine: "pglite" });
