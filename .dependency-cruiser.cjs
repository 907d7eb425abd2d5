/**
 * The import direction: core ← runtime ← store ← scheduler, worker, maintenance ← client, testing, open ← server.
 * Each layer lists what it may import from inside the library; what is not listed is an error.
 */
const src = "^packages/pawl/src";
const test = "\\.test\\.ts$";

/** layer → the layers it may import besides itself; "." stands for the files above all layers (open, pawl) */
const layers = {
  core: [],
  runtime: ["core"],
  store: ["core", "runtime"],
  scheduler: ["core", "runtime", "store", "worker"], // tasks, whose code is the worker's, are what it takes orders for
  worker: ["core", "runtime", "store"],
  maintenance: ["core", "runtime", "store"],
  client: ["core", "runtime", "store", "scheduler", "worker", "maintenance"],
  testing: ["core", "runtime", "store", "scheduler", "worker", "maintenance", "client", "."],
};

const pathOf = (layer) => (layer === "." ? "[^/]+$" : `${layer}/`);

const direction = Object.entries(layers).map(([layer, below]) => ({
  name: `direction-${layer}`,
  comment: `${layer}/ imports only ${[layer, ...below].join(", ")}`,
  severity: "error",
  // A test may also stand on what is above the code it tests.
  from: { path: `${src}/${layer}/`, pathNot: test },
  to: { path: "^packages/", pathNot: `${src}/(${[layer, ...below].map(pathOf).join("|")})` },
}));

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    ...direction,
    {
      name: "core-is-pure",
      comment: "core/ imports nothing but core/: no packages (types aside, and croner, which is pure), no Node modules",
      severity: "error",
      from: { path: `${src}/core/`, pathNot: test },
      to: { pathNot: `${src}/core/|node_modules/croner/`, dependencyTypesNot: ["type-only"] },
    },
    {
      name: "library-knows-no-server",
      comment: "the library never imports the service built on it",
      severity: "error",
      from: { path: "^packages/pawl/" },
      to: { path: "^packages/server/" },
    },
    {
      name: "server-uses-the-front-door",
      comment: "the service uses the library as anyone would: through its entry points",
      severity: "error",
      from: { path: "^packages/server/src/" },
      to: { path: `${src}/`, pathNot: `${src}/(index|testing/index)\\.ts$` },
    },
    {
      name: "code-needs-no-tests",
      comment: "what is published imports neither tests nor their support, nor the conformance suite (tests and pawl/testing do)",
      severity: "error",
      from: { path: "^packages/[^/]+/src/", pathNot: `${test}|/conformance/|/src/testing/` },
      to: { path: `${test}|^test/|^bench/|/conformance/` },
    },
    { name: "no-cycles", comment: "no cycles", severity: "error", from: {}, to: { circular: true, viaOnly: { dependencyTypesNot: ["type-only"] } } },
    {
      name: "resolvable",
      comment: "every import resolves, but for the benchmark's peers, which are installed when they are measured",
      severity: "error",
      from: { pathNot: "^bench/(systems|harness/inspect-redis)" },
      to: { couldNotResolve: true },
    },
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    exclude: { path: "/dist/|^bench/\\.before/" },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.test.json" },
    enhancedResolveOptions: { exportsFields: ["exports"], conditionNames: ["import", "node", "default", "types"] },
  },
};
