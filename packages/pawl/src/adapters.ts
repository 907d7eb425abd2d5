/** `pawl/adapters`: transactions of query builders, to enqueue in. */
// biome-ignore-all assist/source/organizeImports: grouped by hand

/** Your Drizzle transaction, as `tx`. */
export { fromDrizzle } from "./scheduler/enqueue/transaction-adapters.js";
/** Your Kysely transaction, as `tx`. */
export { fromKysely } from "./scheduler/enqueue/transaction-adapters.js";
/** Your Knex transaction, as `tx`. */
export { fromKnex } from "./scheduler/enqueue/transaction-adapters.js";
/** Your Prisma transaction, as `tx`. */
export { fromPrisma } from "./scheduler/enqueue/transaction-adapters.js";
