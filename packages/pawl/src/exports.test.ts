import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import ts from "typescript";
import { describe, expect, expectTypeOf, test } from "vitest";
import type { Pawl } from "./index.js";
import type { PawlService } from "./service.js";

const DOORS = {
  pawl: () => import("./index.js"),
  "pawl/worker": () => import("./worker.js"),
  "pawl/adapters": () => import("./adapters.js"),
  "pawl/testing": () => import("./testing.js"),
  "pawl/service": () => import("./service.js"),
  "pawl/store": () => import("./store.js"),
} as const;
type Door = keyof typeof DOORS;
const NAMES = Object.keys(DOORS) as Door[];

/** Names that later features need. */
const RESERVED = ["workflow", "Workflow", "WorkflowContext", "Run", "StepFailed", "ChildFailed", "signal", "Signal", "graph", "Batch"];

interface Export {
  readonly name: string;
  readonly isType: boolean;
  readonly isDocumented: boolean;
  /** The file that has it, and its name there. */
  readonly from: string;
  readonly original: string;
}

/**
 * Types that the declaration of an exported function names without being exported. All of them are small, and inferred where
 * somebody calls the function. One more is a decision.
 */
const INFERRED: Readonly<Record<string, readonly string[]>> = {
  task: ["TaskHandler"],
  checkRate: ["Rate"],
  schedule: ["ScheduleOptionsOf"],
  exponential: ["Exponential"],
  retryRules: ["SimpleRetry", "RetryRules"],
  isPawlError: ["PawlErrorOf"],
  fromDrizzle: ["DrizzleTransaction"],
  fromKysely: ["KyselyTransaction"],
  fromKnex: ["KnexTransaction"],
  fromPrisma: ["PrismaTransaction"],
  permit: ["Permission"],
  apiKeyText: ["ApiKeyText"],
  parseApiKey: ["ApiKeyText"],
  bulkOutcomeOf: ["BulkOutcome"],
  pawlError: ["ErrorDetails"],
  certificateFaults: ["CertificateFault"],
  spawnThread: ["ThreadOptions"],
  unknownLimitPaths: ["LostPath"],
  memoryStore: ["MemoryStoreOptions"],
};

const sources = new Map<string, ts.SourceFile>();
function sourceOf(file: string): ts.SourceFile {
  const source = sources.get(file) ?? ts.createSourceFile(file, readFileSync(file, "utf8"), ts.ScriptTarget.Latest, true);
  sources.set(file, source);
  return source;
}

const fileOf = (door: Door) => resolve(import.meta.dirname, door === "pawl" ? "index.ts" : `${door.slice("pawl/".length)}.ts`);

function exportsOf(door: Door): readonly Export[] {
  const file = fileOf(door);
  const source = sourceOf(file);
  return source.statements.flatMap((statement) => {
    if (!ts.isExportDeclaration(statement) || statement.exportClause === undefined || !ts.isNamedExports(statement.exportClause))
      throw new Error(`${door} has something that is no list of names: ${statement.getText()}`);
    const from = resolve(dirname(file), (statement.moduleSpecifier as ts.StringLiteral).text.replace(/\.js$/, ".ts"));
    const isDocumented = /\/\*\* .*\*\/\s*$/.test(statement.getFullText().slice(0, statement.getLeadingTriviaWidth()));
    return statement.exportClause.elements.map(({ name, propertyName, isTypeOnly }) => ({
      name: name.text,
      isType: statement.isTypeOnly || isTypeOnly,
      isDocumented,
      from,
      original: (propertyName ?? name).text,
    }));
  });
}

const exported = Object.fromEntries(NAMES.map((door) => [door, exportsOf(door)])) as Record<Door, readonly Export[]>;
const all = Object.values(exported).flat();

/** Lines of names, as short as a snapshot is readable. */
function inLines(names: readonly string[]): string {
  return names.join(" ").replace(/(.{1,120})(?: |$)/g, "$1\n");
}

describe.each(NAMES)("the door %s", (door) => {
  test("has a doc comment for every name", () => {
    expect(exported[door].filter(({ isDocumented }) => !isDocumented).map(({ name }) => name)).toEqual([]);
  });

  test("has at run time the names that are not types", async () => {
    const names = exported[door].filter(({ isType }) => !isType).map(({ name }) => name);
    expect(Object.keys(await DOORS[door]()).sort()).toEqual(names.sort());
  });

  test("is an entry of the package", () => {
    const { exports } = JSON.parse(readFileSync(resolve(import.meta.dirname, "../package.json"), "utf8")) as { exports: Record<string, object> };
    const file = door === "pawl" ? "index" : door.slice("pawl/".length);
    expect(exports[door.replace("pawl", ".")]).toEqual({ types: `./dist/${file}.d.ts`, default: `./dist/${file}.js` });
  });
});

describe("all doors together", () => {
  test("have no name twice, and none that is reserved", () => {
    const names = all.map(({ name }) => name);
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
    expect(names.filter((name) => RESERVED.includes(name))).toEqual([]);
  });

  test("have functions whose declared types are exported too, or inferred", () => {
    const hidden = all.flatMap((one) => hiddenTypes(one).map((type) => [one.name, type] as const));
    expect(hidden.filter(([name, type]) => INFERRED[name]?.includes(type) !== true)).toEqual([]);
  });

  test("have a Pawl without any part that only services need", () => {
    expectTypeOf<keyof Pawl & keyof PawlService>().toEqualTypeOf<never>();
  });

  test("have these names", () => {
    expect(Object.fromEntries(NAMES.map((door) => [door, inLines(exported[door].map(({ name }) => name))]))).toMatchInlineSnapshot(`
      {
        "pawl": "open Pawl OpenOptions task Task AnyTask TaskOptions InputOf OutputOf schedule ScheduleOptions ScheduleView exponential
      retryRules RetryPolicy NonRetryable RetryAfter Snooze PawlError isPawlError ErrorCode JOB_STATES JobState Context
      Middleware Scheduler Transaction JobDefaults EnqueueOptions EnqueueManyOptions EnqueueStreamOptions EnqueueItem
      EnqueueAllResult UniqueOptions Limit Duration Instant Priority Job JobRef JobId JobView AttemptView JobFilter Page
      Failure FailureKind Explanation WaitOptions Events
      ",
        "pawl/adapters": "fromDrizzle fromKysely fromKnex fromPrisma
      ",
        "pawl/service": "ACCESS Action Grant Identity permit ROLES Role Subject apiKeyText parseApiKey Verified AUDIT_OUTCOMES AuditOutcome
      BOUNDS BreakerState bulkOutcomeOf CHECKS Check Finding DEFAULTS milliseconds errorTable pawlError EventName Reason
      reasonInWords blockOf GuessLimit isFinished CheckOptions JsonSchema SchemaCompiler Lane laneKey parseLaneKey LaneKey
      allowed applies LIFECYCLE lifecycleTable VERBS Verb checkPeriod checkRate nearest OutcomeKind PolicyChanges PolicyKind
      QueueDefaults unseenIn isOwnTask OWN_TENANT RECORDED_EVENTS RecordedEvent isSampled TraceContext traceOfHeaders OpenWait
      CertificateTexts certificateFaults LOST_HANDLER_EXIT_CODES spawnThread Audit AnchoredHead AuditReport AuditView NewAudit
      AuditHead BreakersOperator BreakerView BreakerFilter JobCounts StateCounts Backlog Encryption EncryptionOptions
      MasterKeyView checkJobsFilter ClusterEvents EventBatch EventPosition EventTail LocalApiKeys ApiKeys ApiKeyView
      ApiKeyOptions ApiKeyWithSecret PepperOptions unknownLimitPaths LimitsOperator LimitsFilter LimitView EnqueueAllOptions
      LimitKeyValue MIN_PEPPER_BYTES Replies IdempotentRequest IdempotentRequestStart Reply CodeSchedule ScheduledJobOptions
      TickView BulkReport DeadGroupsFilter DeadGroupView PawlInfo LeaseId JobChange Jobs Dead PolicyOperator Operator
      QueueView TaskView TenantView BackfillReport PreviewedTick ScheduleChanges ScheduleReference Schedules GroupSeries
      SeriesOptions SeriesPointView SeriesView CheckTarget TargetWithSecret BULK_VERBS BulkVerb BulkOptions OPTION_ROWS
      OptionKind OptionName OptionRow FILTER_ROWS FilterKind FilterName checkPace checkInstant checkBulkFilter
      checkBulkOptions TargetOptions TargetReference Targets TargetView TaskDefinition Tasks ExportEntry PurgeOptions
      PurgeProgress PurgeView Purges Tenants EnqueueSpan TracedEnqueue Tracing LiveLaneView LiveWorkerView Lanes LanesFilter
      LiveWorkers LocalWorkers LogView rolesScript rolesScriptForPsql isMasterKey RemoteClaimRequest LeasedJob RemoteLease
      Host HostedTask HostOptions HostRenewal checkAttemptOutcome HeldJobs REPORTED_FAILURE_KINDS AttemptOutcome
      ReportedFailure ReportedFailureKind AttemptReport ReportedOutcome TaskRunOptions PulledResults PulledOutcome PulledJob
      PulledLease PulledIntents PulledRecord PulledRenewal Deliver Delivery Pusher serviceOf PawlService attachService
      PageOptions PagedList allItems jobsCursorAfter ApiKeysFilter PreviewOptions VERSION
      ",
        "pawl/store": "Store EngineStore ServiceStore ApiKeyStore AuditStore DataKeyStore TenantStore PurgeStore ReplyStore BatchStore
      BreakerStore DeadStore DirectHandoff DutyStore IngestStore JobStore LaneStore LeaseStore Renewer LimitStore CheckupStore
      EventStore ExplainStore SeriesStore PolicyStore RecordStore ScheduleStore TargetStore TaskStore WorkerStore Scope Wakeup
      memoryStore StoreInfo ExportedJob
      ",
        "pawl/testing": "openTest TestPawl TestOptions virtualClock VirtualClock VirtualClockOptions faultyStore Fault FaultPlan
      ",
        "pawl/worker": "Worker WorkerOptions WorkerStatus RunningJob ConcurrencyOptions Reservation Needs Provides BreakerOptions RateOptions
      ",
      }
    `);
  });
});

/** The types that the declaration of an exported function names, and that no door exports. */
function hiddenTypes({ original, isType, from }: Export): readonly string[] {
  if (isType) return [];
  const source = sourceOf(from);
  const own = new Set(source.statements.flatMap((statement) => (isTypeDeclaration(statement) ? [statement.name.text] : [])));
  const imported = new Set(source.statements.filter(ts.isImportDeclaration).filter(isRelative).flatMap(namesOf));
  const hidden = new Set<string>();
  for (const statement of source.statements) {
    if (!ts.isFunctionDeclaration(statement) || statement.name?.text !== original) continue;
    const visit = (node: ts.Node): void => {
      if (ts.isBlock(node)) return;
      if (ts.isTypeReferenceNode(node)) {
        const type = node.typeName.getText().split(".")[0] as string;
        const isOurs = own.has(type) || imported.has(type);
        if (isOurs && !all.some((one) => one.original === type)) hidden.add(type);
      }
      ts.forEachChild(node, visit);
    };
    visit(statement);
  }
  return [...hidden];
}

function isTypeDeclaration(
  node: ts.Node,
): node is ts.InterfaceDeclaration | ts.TypeAliasDeclaration | (ts.ClassDeclaration & { name: ts.Identifier }) {
  return ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node) || (ts.isClassDeclaration(node) && node.name !== undefined);
}

function isRelative({ moduleSpecifier }: ts.ImportDeclaration): boolean {
  return (moduleSpecifier as ts.StringLiteral).text.startsWith(".");
}

function namesOf({ importClause }: ts.ImportDeclaration): readonly string[] {
  const named = importClause?.namedBindings;
  return named !== undefined && ts.isNamedImports(named) ? named.elements.map(({ name }) => name.text) : [];
}
