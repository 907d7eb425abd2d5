/**
 * The import direction by floor: core ← runtime ← store ← scheduler, worker, maintenance ← remote, testing, open ← server.
 * Each floor lists what it may import from inside the library; what is not listed is an error. Rooms of a floor: below.
 */
const src = "^packages/pawl/src";
const test = "\\.test\\.ts$";
const doors = `${src}/(index|worker|adapters|testing|service|store)\\.ts$`;
const suite = "^packages/pawl/conformance/";

/** floor → the floors it may import besides itself; "." stands for the files above all floors (open, pawl) */
const floors = {
  core: [],
  runtime: ["core"],
  store: ["core", "runtime"],
  scheduler: ["core", "runtime", "store"],
  worker: ["core", "runtime", "store"],
  maintenance: ["core", "runtime", "store"],
  remote: ["core", "runtime", "store", "scheduler", "worker", "maintenance"],
  testing: ["core", "runtime", "store", "scheduler", "worker", "maintenance", "remote", "."],
};

const pathOf = (floor) => (floor === "." ? "[^/]+$" : `${floor}/`);

const byFloor = Object.entries(floors).map(([floor, below]) => ({
  name: `direction-${floor}`,
  comment: `${floor}/ imports only ${[floor, ...below].join(", ")}`,
  severity: "error",
  // A test may also stand on what is above the code it tests.
  from: { path: `${src}/${floor}/`, pathNot: test },
  to: { path: "^packages/", pathNot: `${src}/(${[floor, ...below].map(pathOf).join("|")})` },
}));

/** room of core/ → the rooms it may import besides itself, values and jobs */
const coreRooms = {
  limits: ["sharing"],
  sharing: ["limits"],
  schedules: [],
  access: [],
  observe: ["limits", "sharing", "schedules", "access"],
};

const byCoreRoom = Object.entries(coreRooms).map(([room, more]) => ({
  name: `core-room-${room}`,
  comment: `core/${room}/ imports only ${[room, "values", "jobs", ...more].map((one) => `core/${one}`).join(", ")}`,
  severity: "error",
  from: { path: `${src}/core/${room}/`, pathNot: test },
  to: { path: `${src}/core/`, pathNot: `${src}/core/(${[room, "values", "jobs", ...more].join("|")})/`, dependencyTypesNot: ["type-only"] },
}));

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    ...byFloor,
    ...byCoreRoom,
    {
      name: "core-values-are-lowest",
      comment: "core/values/ and core/jobs/ import no other room of core/; but a task's definition checks its options of every room",
      severity: "error",
      from: { path: `${src}/core/(values|jobs)/`, pathNot: `${test}|${src}/core/jobs/task\\.ts$` },
      to: { path: `${src}/core/`, pathNot: `${src}/core/(values|jobs)/`, dependencyTypesNot: ["type-only"] },
    },
    {
      name: "core-is-pure",
      comment: "core/ imports nothing but core/: no packages (types aside, and croner, which is pure), no Node modules",
      severity: "error",
      from: { path: `${src}/core/`, pathNot: test },
      to: { pathNot: `${src}/core/|node_modules/croner/`, dependencyTypesNot: ["type-only"] },
    },
    {
      name: "stores-are-apart",
      comment: "a store imports the port and no other store; only wrappers and open know several",
      severity: "error",
      from: { path: `${src}/store/(memory|postgres)/`, pathNot: test },
      to: { path: `${src}/store/(memory|postgres|encrypted|wrap)/`, pathNot: `${src}/store/$1/` },
    },
    {
      name: "postgres-behind-the-port",
      comment: "store/postgres is opened by open and testing; everything else speaks to the port",
      severity: "error",
      from: { path: `${src}/(core|runtime|store/port|store/wrap|store/encrypted|store/memory|scheduler|worker|maintenance|remote)/`, pathNot: test },
      to: { path: `${src}/store/postgres/` },
    },
    {
      name: "library-knows-no-server",
      comment: "the library never imports the service built on it",
      severity: "error",
      from: { path: "^packages/pawl/" },
      to: { path: "^packages/server/" },
    },
    {
      name: "server-uses-the-doors",
      comment: "the service uses the library as anyone would: through its entry points",
      severity: "error",
      from: { path: "^packages/server/src/" },
      to: { path: `${src}/`, pathNot: doors },
    },
    {
      name: "doors-are-for-outside",
      comment: "the library itself imports the file that has a thing, and no entry point",
      severity: "error",
      from: { path: `${src}/`, pathNot: test },
      to: { path: doors },
    },
    {
      name: "code-needs-no-tests",
      comment: "what is published imports neither tests nor their support, nor the conformance suite (tests and pawl/testing do)",
      severity: "error",
      from: { path: "^packages/[^/]+/src/", pathNot: `${test}|/src/testing/` },
      to: { path: `${test}|^test/|^bench/|${suite}` },
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
