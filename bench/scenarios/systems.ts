/** Who takes part, by name. The order is that of their turns. */
export const POSTGRES_PEERS = ["graphile-worker", "pg-boss", "bullmq-postgres"] as const;
export const REDIS_PEERS = ["bullmq", "bee-queue", "sidekiq", "celery"] as const;
export const ALL: readonly string[] = ["pawl", ...POSTGRES_PEERS, ...REDIS_PEERS];
/** Without those that only speak the simpler commands. */
export const NODE_SYSTEMS: readonly string[] = ["pawl", ...POSTGRES_PEERS, "bullmq", "bee-queue"];
export const ON_POSTGRES: readonly string[] = ["pawl", ...POSTGRES_PEERS];

export function isPostgresPeer(system: string): boolean {
  return (POSTGRES_PEERS as readonly string[]).includes(system);
}
