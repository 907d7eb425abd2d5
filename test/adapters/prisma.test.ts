import { PrismaPg } from "@prisma/adapter-pg";
import { fromPrisma } from "../../packages/pawl/src/adapters.js";
import { PrismaClient } from "./prisma-client.mjs";
import { adapterSuite, CARTS } from "./suite.js";

adapterSuite({
  name: "Prisma",
  async connect(database) {
    const prisma = new PrismaClient({ adapter: new PrismaPg({ ...database.config, max: 5 }) });
    await prisma.$executeRawUnsafe(CARTS);
    return {
      transaction: (work) =>
        prisma.$transaction((tx) => work({ tx: fromPrisma(tx), saveCart: (id) => tx.$executeRawUnsafe("insert into cart values ($1)", id) })),
      close: () => prisma.$disconnect(),
    };
  },
});
