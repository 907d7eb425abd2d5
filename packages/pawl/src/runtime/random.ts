import { randomBytes } from "node:crypto";
import type { RandomBytes } from "../core/id.js";

export const systemRandomBytes: RandomBytes = (size) => randomBytes(size);
