import type { Place, Session } from "../contract/system.ts";
import { connectWith } from "./pawl.ts";

export const connect = (place: Place): Promise<Session> => connectWith(place, { engine: "pglite" });
