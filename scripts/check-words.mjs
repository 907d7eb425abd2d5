/**
 * Keeps the words of docs/glossary.md and the rules of docs/style.md that a program can check. Fails on
 *
 * - `word`: a retired word in an identifier or a file name,
 * - `type-name`: a type whose name says nothing, such as `Given` or `Parts`,
 * - `type-twice`: a type name that two files of one package declare,
 * - `comment`: a comment sentence that begins with a relative clause as its subject,
 * - `unit`: a constant for a duration or a size without its unit,
 * - `most`: `MOST_` where `MAX_` is meant,
 * - `folder`: more than 20 source files in a folder, tests aside,
 * - `room`: a folder of a floor that is no room,
 * - `postgres`: words of Postgres outside store/postgres.
 *
 * Findings that are older than the rule are counted per file in check-words.json. A count may only go down:
 * `node scripts/check-words.mjs --update` writes the lower counts, and refuses higher ones.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, extname, join, resolve } from "node:path";
import ts from "typescript";

const SKIPPED_FOLDERS = new Set(["node_modules", "dist", "coverage", "data", "results"]);
const SOURCE_EXTENSIONS = new Set([".ts", ".mts", ".mjs", ".cjs", ".sql"]);
const SOURCE_FOLDERS = ["packages", "test", "bench", "examples", "scripts"];
const MAX_FILES_PER_FOLDER = 20;
const BASELINE = "scripts/check-words.json";

const LIBRARY = "packages/pawl/src/";
const isTest = (file) => /\.test\.m?ts$/.test(file);
/** Code that is published, without its unit tests. */
const isProduct = (file) => /^packages\/[^/]+\/src\//.test(file) && !isTest(file);

/**
 * Retired words, and what to write instead. A word is a part of an identifier or of a file name: `onKnock`, `KNOCK_MS`
 * and `knocks.ts` all hold "knock". `except` matches identifiers and file names in which the word has its ordinary
 * meaning; `files` limits the rule to some files.
 */
const RETIRED = {
  aside: { instead: "needsSlowPath, or the name of what is set aside" },
  band: { instead: "priority" },
  boot: { instead: "instance (of a worker)", except: /boot-?_?(id|time)/i },
  bundle: { instead: "history row" },
  clinic: { instead: "fixture" },
  conveyor: { instead: "pipeline" },
  deafen: { instead: "unsubscribe" },
  doomed: { instead: "overdue, or of a failed dependency", files: isProduct },
  front: { instead: "admitted section", except: /infront|upfront|storefront/i },
  gate: { instead: "limit key; barrier in tests" },
  hoard: { instead: "unstarted jobs" },
  household: { instead: "worker group" },
  hungry: { instead: "waiting" },
  knock: { instead: "limit check" },
  mayfly: { instead: "canSend" },
  parcel: { instead: "ready row" },
  portion: { instead: "minimum batch", except: /proportion/i },
  pulse: { instead: "poll" },
  rig: { instead: "fixture" },
  scene: { instead: "fixture" },
  seat: { instead: "idle worker" },
  sitter: { instead: "idle worker" },
  stage: { instead: "fixture" },
  stillborn: { instead: "dead on arrival" },
  strand: { instead: "strandJobs, or what becomes of the jobs", except: /^(un)?strand(s|ed|Jobs|-jobs)?$/i },
  tally: { instead: "counter" },
  teller: { instead: "recorder" },
  ticket: { instead: "job limits", except: /session-?ticket/i },
  told: { instead: "recorded, reported or received", files: isProduct },
  torn: { instead: "deleted" },
  twins: { instead: "store pair" },
  unfit: { instead: "not applicable" },
  unheard: { instead: "not received", files: isProduct },
  unhear: { instead: "unsubscribe" },
  untold: { instead: "unannounced" },
  vault: { instead: "key store" },
  wall: { instead: "tenant role", except: /wall-?_?(clock|time|ms)|firewall/i, files: (file) => !/time-zone/.test(file) },
};

/** Types that say nothing of their domain. `JobEntry` or `RequestParts` are fine. */
const EMPTY_TYPE_NAMES = new Set(
  ["Asked", "Entry", "Fired", "Given", "Gone", "Hands", "Heard", "Held", "Kept", "Known", "Left", "Line", "Looks", "Made", "Moved", "Own"].concat([
    "Parts",
    "Place",
    "Rest",
    "Said",
    "Seen",
    "Standing",
    "Taken",
    "Things",
    "Told",
    "Waiting",
  ]),
);

/** Beginnings of a sentence whose subject is not named. A question may begin so. */
const OPENER =
  /^(?:who|whoever|whose|what|whatever|that which|those (?:that|who|which|whose)|of (?:which|whom|those|what)|one (?:that|who|whose))\b/i;

/** Words of a constant that is a duration or a size. */
const MEASURE =
  /^(?:AGE|BACKOFF|COOLDOWN|DELAY|DURATION|EXPIRY|GRACE|INTERVAL|LATENCY|LEASE|LIFETIME|OUTAGE|PACE|PAUSE|PERIOD|SILENCE|SIZE|TIMEOUT|TTL|WAIT|WINDOW)$/;
/** Words of a constant that say what is counted, besides plurals: `MAX_JOBS` needs no unit. */
const UNIT =
  /^(?:MS|NS|US|S|SEC|SECOND|MIN|MINUTE|HOUR|DAY|WEEK|MONTH|YEAR|B|BYTE|KB|KIB|MB|MIB|GB|CHAR|COLUMN|ROW|LINE|BIT|DIGIT|PERCENT|RATIO|SHARE|FACTOR|COUNT|CODE|PORT|ID|KEY|SEED|VERSION|STATUS|CLASS|PER|NUMBER|MASK|FLAG|MODE|LEVEL|RATE|WEIGHT|PRIORITY|PAGE|DEPTH|SEQ|MEGABYTE)$/;
/** A number from here on is a duration or a size, unless its name says what it counts. */
const LARGE = 1_000;

/** The rooms, the same on every floor, and what else a floor holds. */
const ROOMS = ["jobs", "enqueue", "claim", "settle", "schedules", "limits", "sharing", "access", "observe", "duties"];
const FLOORS = {
  [`${LIBRARY}core`]: ["values"],
  [`${LIBRARY}runtime`]: ["time", "process", "io"],
  [`${LIBRARY}store`]: ["port", "wrap", "encrypted", "memory", "postgres"],
  [`${LIBRARY}store/port`]: [],
  [`${LIBRARY}store/memory`]: [],
  [`${LIBRARY}store/postgres`]: ["connection", "drivers", "embedded", "handoff", "migrations", "schema", "wakeups"],
  [`${LIBRARY}scheduler`]: [],
  [`${LIBRARY}worker`]: ["breakers", "push", "remote", "run"],
  [`${LIBRARY}maintenance`]: [],
  [`${LIBRARY}remote`]: ["transport", "views", "worker"],
  "packages/pawl/conformance": [],
};

/** What may speak of Postgres besides store/postgres: it opens, wraps or names one. */
const POSTGRES_ALLOWED = [
  `${LIBRARY}store/postgres/`,
  `${LIBRARY}open.ts`,
  `${LIBRARY}service.ts`,
  `${LIBRARY}testing/`,
  // The service's configuration says which store to open, and for people what it is.
  /^packages\/server\/src\/(?:config|cli|live|terminal|text|words)\//,
  /^packages\/server\/src\/(?:serve|run)\/(?:open-store|compare-with-store)\.ts$/,
  // Names the versions of Postgres that it knows, and writes down what to do about a server.
  /\/(?:postgres-versions|doctor-versions|doctor|checkup|error)\.ts$/,
  // A transaction of the user's own, by the libraries they use.
  /\/adapters?(?:\.ts$|\/)/,
];
const POSTGRES_IDENTIFIER = /^(?:pg|postgres|psql|plpgsql)$/;
const POSTGRES_TEXT =
  /(?:^|[\n(;])\s*select\b[\s\S]{1,400}?\bfrom\s+[a-z_.]+|\binsert\s+into\s|\bdelete\s+from\s|\bupdate\s+[a-z_.]+\s+set\s|::(?:int\d?|bigint|text|uuid|jsonb?|timestamptz|float8|bool)\b|\bpg_[a-z]+/;

/** `readyRows`, `READY_ROWS` and `ready-rows` are ["ready", "rows"]. */
export function wordsOf(name) {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replace(/([A-Z]+)([A-Z][a-z])/g, "$1 $2")
    .split(/[^A-Za-z0-9]+/)
    .filter((word) => word !== "")
    .map((word) => word.toLowerCase());
}

const RETIRED_FORMS = new Map(Object.keys(RETIRED).flatMap((word) => formsOf(word).map((form) => [form, word])));

function formsOf(word) {
  const plural = word.endsWith("y") ? `${word.slice(0, -1)}ies` : word.endsWith("s") ? word : `${word}s`;
  return [word, plural];
}

/** The retired words of a name, in a file. */
function retiredIn(name, file) {
  const found = wordsOf(name).map((word) => RETIRED_FORMS.get(word));
  return [...new Set(found)].filter((word) => {
    if (word === undefined) return false;
    const { except, files } = RETIRED[word];
    return !except?.test(name) && (files === undefined || files(file));
  });
}

function* filesIn(root, folder) {
  const path = join(root, folder);
  if (!existsSync(path)) return;
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    const inside = `${folder}/${entry.name}`;
    if (entry.isDirectory()) {
      if (!SKIPPED_FOLDERS.has(entry.name) && !entry.name.startsWith(".")) yield* filesIn(root, inside);
    } else if (SOURCE_EXTENSIONS.has(extname(entry.name)) && !entry.name.endsWith(".d.ts")) yield inside;
  }
}

/** Every finding below a folder: `{ rule, file, line?, text }`. */
export function check(root) {
  const findings = [];
  const files = SOURCE_FOLDERS.flatMap((folder) => [...filesIn(root, folder)]);
  const types = new Map();
  checkNames(files, findings);
  checkFolders(files, findings);
  for (const file of files) {
    if (/(^|\/)check-words(\.test)?\.m?ts$|check-words\.mjs$/.test(file)) continue; // names what it forbids
    const text = readFileSync(join(root, file), "utf8");
    if (file.endsWith(".sql")) checkComments(file, text, sqlComments(text), findings);
    else checkSource(file, text, types, findings);
  }
  for (const declared of types.values()) {
    if (declared.length < 2) continue;
    for (const { name, file, line } of declared) {
      const others = declared.filter((one) => one.file !== file).map((one) => one.file);
      if (others.length > 0) findings.push({ rule: "type-twice", file, line, text: `${name} is also declared in ${others.join(", ")}` });
    }
  }
  return findings;
}

function checkNames(files, findings) {
  const seen = new Set();
  for (const file of files) {
    const parts = file.split("/");
    parts.forEach((part, index) => {
      const path = parts.slice(0, index + 1).join("/");
      if (seen.has(path)) return;
      seen.add(path);
      const name = index === parts.length - 1 ? basename(part).replace(/\..*$/, "") : part;
      for (const word of retiredIn(name, file))
        findings.push({ rule: "word", file: path, text: `${part}: not "${word}" but ${RETIRED[word].instead}` });
    });
  }
}

function checkFolders(files, findings) {
  const folders = new Map();
  for (const file of files) if (!isTest(file)) folders.set(dirname(file), (folders.get(dirname(file)) ?? 0) + 1);
  for (const [folder, count] of folders) {
    if (count > MAX_FILES_PER_FOLDER && !folder.endsWith("/migrations"))
      findings.push({ rule: "folder", file: folder, text: `${count} source files; ${MAX_FILES_PER_FOLDER} are the most` });
  }
  const rooms = new Set(files.flatMap((file) => ancestors(dirname(file))));
  for (const room of rooms) {
    const more = FLOORS[dirname(room)];
    if (more === undefined || room in FLOORS) continue;
    if (!ROOMS.includes(basename(room)) && !more.includes(basename(room)))
      findings.push({ rule: "room", file: room, text: `${basename(room)} is no room: ${[...ROOMS, ...more].join(", ")}` });
  }
}

function ancestors(folder) {
  const parts = folder.split("/");
  return parts.map((_, index) => parts.slice(0, index + 1).join("/"));
}

function checkSource(file, text, types, findings) {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, false);
  const literals = [];
  const lineOf = (at) => source.getLineAndCharacterOfPosition(at).line + 1;
  const startOf = (node) => ts.skipTrivia(text, node.pos);
  const report = (rule, at, what) => findings.push({ rule, file, line: lineOf(at), text: what });
  const postgres = isProduct(file) && !POSTGRES_ALLOWED.some((one) => (typeof one === "string" ? file.startsWith(one) : one.test(file)));

  const visit = (node) => {
    if (ts.isIdentifier(node) || ts.isPrivateIdentifier(node)) {
      const name = node.text.replace(/^#/, "");
      for (const word of retiredIn(name, file)) report("word", startOf(node), `${name}: not "${word}" but ${RETIRED[word].instead}`);
      if (/^MOST_/.test(name)) report("most", startOf(node), `${name}: MAX_${name.slice(5)}`);
      if (postgres && wordsOf(name).some((word) => POSTGRES_IDENTIFIER.test(word)))
        report("postgres", startOf(node), `${name} belongs in store/postgres`);
    } else if (isText(node)) {
      literals.push([startOf(node), node.end]);
      if (postgres && !ts.isRegularExpressionLiteral(node) && POSTGRES_TEXT.test(node.text))
        report("postgres", startOf(node), "SQL belongs in store/postgres");
    } else if (ts.isVariableDeclaration(node) || ts.isPropertyDeclaration(node)) {
      checkUnit(node, file, report);
    } else if (isTypeDeclaration(node) && EMPTY_TYPE_NAMES.has(node.name?.text)) {
      report("type-name", startOf(node), `${node.name.text}: say of what`);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);

  const [, owner] = /^packages\/([^/]+)\/src\//.exec(file) ?? [];
  if (owner !== undefined && isProduct(file)) {
    const names = new Map(source.statements.filter(isTypeDeclaration).map((node) => [node.name?.text, node]));
    for (const [name, node] of names) {
      const key = `${owner}:${name}`;
      types.set(key, [...(types.get(key) ?? []), { name, file, line: lineOf(startOf(node)) }]);
    }
  }
  checkComments(file, text, comments(text, literals), findings);
}

const isTypeDeclaration = (node) =>
  ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node) || ts.isClassDeclaration(node) || ts.isEnumDeclaration(node);

const isText = (node) =>
  ts.isStringLiteral(node) ||
  ts.isNoSubstitutionTemplateLiteral(node) ||
  ts.isTemplateHead(node) ||
  ts.isTemplateMiddle(node) ||
  ts.isTemplateTail(node) ||
  ts.isRegularExpressionLiteral(node);

function checkUnit(node, file, report) {
  if (!isProduct(file) || node.initializer === undefined || !ts.isIdentifier(node.name)) return;
  const { text: name } = node.name;
  if (!/^[A-Z][A-Z0-9_]*$/.test(name)) return;
  const value = numberOf(node.initializer);
  if (value === undefined) return;
  const words = name.split("_");
  const isMeasure = words.some((word) => MEASURE.test(word));
  // The most and the fewest of something are counts, if they are written as one number: 64 * 1024 are bytes.
  const isMost = /^(?:MAX|MIN)$/.test(words[0]) && ts.isNumericLiteral(node.initializer) && !isMeasure;
  const isCounted = isMost || words.some((word) => UNIT.test(word) || (word.length > 3 && word.endsWith("S") && !word.endsWith("SS")));
  if (value !== 0 && !isCounted && (value >= LARGE || isMeasure)) report("unit", node.name.pos + 1, `${name}: of what? ${name}_MS, ${name}_BYTES, …`);
}

/** The value of arithmetic with numbers; constants that are not known here count as 1. Undefined: it is no number. */
function numberOf(node) {
  if (ts.isNumericLiteral(node)) return Number(node.text);
  if (ts.isParenthesizedExpression(node)) return numberOf(node.expression);
  if (!ts.isBinaryExpression(node)) return undefined;
  const part = (side) => (ts.isIdentifier(side) && /^[A-Z][A-Z0-9_]*$/.test(side.text) ? 1 : numberOf(side));
  const [left, right] = [part(node.left), part(node.right)];
  if (left === undefined || right === undefined) return undefined;
  switch (node.operatorToken.kind) {
    case ts.SyntaxKind.AsteriskToken:
      return left * right;
    case ts.SyntaxKind.AsteriskAsteriskToken:
      return left ** right;
    case ts.SyntaxKind.PlusToken:
      return left + right;
    case ts.SyntaxKind.MinusToken:
      return left - right;
    case ts.SyntaxKind.SlashToken:
      return left / right;
    default:
      return undefined;
  }
}

/** [position, text] of every comment; those that follow each other line by line are one. */
function comments(text, literals) {
  const found = [];
  let next = 0;
  for (const match of text.matchAll(/\/\/[^\n]*|\/\*[\s\S]*?\*\//g)) {
    while (next < literals.length && literals[next][1] <= match.index) next++;
    if (next < literals.length && literals[next][0] <= match.index) continue;
    found.push([match.index, match[0]]);
  }
  return joined(text, found);
}

function sqlComments(text) {
  return joined(
    text,
    [...text.matchAll(/--[^\n]*/g)].map((match) => [match.index, match[0]]),
  );
}

function joined(text, found) {
  const all = [];
  for (const [at, comment] of found) {
    const last = all.at(-1);
    const goesOn =
      last !== undefined && !comment.startsWith("/*") && !last[1].startsWith("/*") && /^\n[ \t]*$/.test(text.slice(last[0] + last[1].length, at));
    if (goesOn) last[1] = text.slice(last[0], at) + comment;
    else all.push([at, comment]);
  }
  return all;
}

function checkComments(file, text, all, findings) {
  for (const [at, comment] of all) {
    const prose = comment.replace(/^[ \t]*(?:\/\*\*?|\*\/|\*|\/\/+|--+)[ \t]?/gm, "").replace(/\*\/\s*$/, "");
    for (const sentence of prose.split(/(?<=[.!?])\s+|\n\s*\n|^\s*[-*] /m)) {
      if (!OPENER.test(sentence.trim()) || sentence.trim().endsWith("?")) continue;
      const line = text.slice(0, at).split("\n").length;
      findings.push({ rule: "comment", file, line, text: `name the subject: ${sentence.trim().replace(/\s+/g, " ").slice(0, 60)}…` });
    }
  }
}

/** Counts of findings, by rule and file. */
export function countsOf(findings) {
  const counts = {};
  for (const { rule, file } of findings) {
    counts[rule] ??= {};
    counts[rule][file] = (counts[rule][file] ?? 0) + 1;
  }
  return counts;
}

/** What is new against the counts that are allowed, and where the allowed count is too high by now. */
export function compare(findings, allowed) {
  const counts = countsOf(findings);
  const fresh = findings.filter(({ rule, file }) => counts[rule][file] > (allowed[rule]?.[file] ?? 0));
  const lower = Object.entries(allowed).flatMap(([rule, files]) =>
    Object.entries(files).flatMap(([file, count]) =>
      (counts[rule]?.[file] ?? 0) < count ? [{ rule, file, count, now: counts[rule]?.[file] ?? 0 }] : [],
    ),
  );
  return { fresh, lower };
}

const totalOf = (counts) => Object.values(counts ?? {}).reduce((sum, count) => sum + count, 0);

function sorted(counts) {
  const byName = (object) => Object.fromEntries(Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1)));
  return byName(Object.fromEntries(Object.entries(counts).map(([rule, files]) => [rule, byName(files)])));
}

function main(args) {
  const root = resolve(args.find((one) => !one.startsWith("--")) ?? join(import.meta.dirname, ".."));
  const path = join(root, BASELINE);
  const allowed = existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : undefined;
  const findings = check(root);
  if (args.includes("--update")) {
    const counts = countsOf(findings);
    const risen = allowed === undefined ? [] : Object.keys(counts).filter((rule) => totalOf(counts[rule]) > totalOf(allowed[rule]));
    for (const rule of risen)
      console.error(`${rule}: ${totalOf(counts[rule])} findings, ${totalOf(allowed[rule])} were allowed: it may only go down`);
    if (risen.length === 0) writeFileSync(path, `${JSON.stringify(sorted(counts), undefined, 2)}\n`);
    return risen.length === 0;
  }
  const { fresh, lower } = compare(findings, allowed ?? {});
  for (const { rule, file, line, text } of fresh) console.error(`${file}${line === undefined ? "" : `:${line}`}: ${rule}: ${text}`);
  for (const { rule, file, count, now } of lower)
    console.error(`${file}: ${rule}: ${now} left of ${count}: run node scripts/check-words.mjs --update`);
  console.log(`words: ${findings.length} findings, ${fresh.length} in files with more than ${BASELINE} allows, ${lower.length} counts to lower`);
  return fresh.length + lower.length === 0;
}

if (process.argv[1] === import.meta.filename) process.exitCode = main(process.argv.slice(2)) ? 0 : 1;
