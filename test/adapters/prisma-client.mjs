/**
 * What `prisma generate` writes, for a schema without models: the generator itself downloads an engine when it runs,
 * which a test cannot. Enqueueing needs no model, only the client's transactions and its raw queries.
 */
import { getPrismaClient } from "@prisma/client/runtime/client";

export const PrismaClient = getPrismaClient({
  previewFeatures: [],
  clientVersion: "7.9.1",
  engineVersion: "0",
  activeProvider: "postgresql",
  inlineSchema: 'generator client {\n  provider = "prisma-client"\n}\n\ndatasource db {\n  provider = "postgresql"\n}\n',
  runtimeDataModel: { models: {}, enums: {}, types: {} },
  parameterizationSchema: { strings: [], graph: Buffer.from([0, 0, 0]).toString("base64url") },
  compilerWasm: {
    getRuntime: () => import("@prisma/client/runtime/query_compiler_fast_bg.postgresql.mjs"),
    async getQueryCompilerWasmModule() {
      const { wasm } = await import("@prisma/client/runtime/query_compiler_fast_bg.postgresql.wasm-base64.mjs");
      return new WebAssembly.Module(Buffer.from(wasm, "base64"));
    },
    importName: "./query_compiler_fast_bg.js",
  },
});
