/** where Debian's packages put the programs */
export const debianPostgres: string;
export const pgbouncer: string;
export const faketime: string;
export const tmux: string;
export const prometheus: string;
export const zsh: string;
export const fish: string;
export function installServers(): Promise<void>;
export function installPackages(names: readonly string[], purpose: string, say?: (text: string) => void): string | undefined;
/** as root on Debian */
export function canInstall(): boolean;
