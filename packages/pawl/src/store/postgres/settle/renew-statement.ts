import { sqlFile } from "../connection/sql-statement.js";

/** Apart, for the renewal thread: it has no `Db`, and loads little. */
export const RENEW = sqlFile("settle/renew.sql");
