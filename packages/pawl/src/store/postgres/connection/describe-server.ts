import { pawlError } from "../../../core/values/error.js";
import { type Db, statement } from "./db.js";

/** The oldest Postgres that the statements are written for, and tested on. */
const MIN_SERVER_VERSION = 15;

const DESCRIBE = statement(
  "describe",
  `select current_setting('server_version') as version, current_setting('server_version_num')::int / 10000 as major,
    current_setting('fsync') = 'on' and current_setting('synchronous_commit') <> 'off' as safe`,
);

export interface ServerDescription {
  readonly version: string;
  /** True if commits survive power loss. */
  readonly safe: boolean;
}

/** Refuses a server that is too old before anything is written to it. */
export async function describeServer(db: Pick<Db, "query">): Promise<ServerDescription> {
  const [row] = await db.query<ServerDescription & { readonly major: number }>(DESCRIBE);
  const { version, major, safe } = row as ServerDescription & { readonly major: number };
  if (major < MIN_SERVER_VERSION) throw pawlError("store_too_old", { version, needed: MIN_SERVER_VERSION });
  return { version, safe };
}
