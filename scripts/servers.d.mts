/** where Debian's packages put the programs */
export const debianPostgres: string;
export const pgbouncer: string;
export const faketime: string;
export function installServers(): Promise<void>;
