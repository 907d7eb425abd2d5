import { randomBytes } from "node:crypto";
import type { RandomBytes } from "../../core/jobs/id.js";

export const systemRandomBytes: RandomBytes = (size) => randomBytes(size);
