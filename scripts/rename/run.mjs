/**
 * The one rename: applies the tables beside it (tables/*.json, format in FORMAT.md) to a fresh clone.
 *   node run.mjs --out DIR [--tables A,B] [--src REPO] [--in-place]
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join, posix, relative, resolve } from "node:path";

const argv = process.argv.slice(2);
const option = (name, otherwise) => (argv.includes(name) ? argv[argv.indexOf(name) + 1] : otherwise);
const here = import.meta.dirname;
const src = resolve(option("--src", join(here, "../..")));
const out = resolve(option("--out", join(src, "..", "renamed")));
const tableNames = option(
  "--tables",
  readdirSync(join(here, "tables"))
    .map((f) => f.replace(/\.json$/, ""))
    .join(","),
).split(",");
const ts = createRequire(join(src, "package.json"))("typescript");

if (!argv.includes("--in-place")) {
  rmSync(out, { recursive: true, force: true });
  execFileSync("git", ["clone", "-q", "--shared", src, out]);
  execFileSync("cp", ["-al", join(src, "node_modules"), join(out, "node_modules")]);
  for (const p of ["pawl", "server"])
    if (existsSync(join(src, "packages", p, "node_modules")))
      execFileSync("cp", ["-al", join(src, "packages", p, "node_modules"), join(out, "packages", p, "node_modules")]);
}

const tables = tableNames.map((name) => ({ name, ...JSON.parse(readFileSync(join(here, "tables", `${name}.json`), "utf8")) }));
const all = (kind) => tables.flatMap((t) => (t[kind] ?? []).map((r) => ({ ...r, table: t.name, used: 0 })));
/** Whose table decides about a file, where several have a word on it. */
const OWNERS = [
  [/^packages\/pawl\/src\/store\/postgres\//, "A"],
  [/^packages\/pawl\/src\/(core|store)\//, "B"],
  [/^packages\/pawl\/src\/(worker|maintenance|client|runtime|testing)\//, "C"],
  [/^packages\/pawl\//, "D"],
  [/^packages\/server\//, "E"],
  [/./, "F"],
];
const ownerOf = (file) => OWNERS.find(([re]) => re.test(file))[1];
const symbols = all("symbols").sort((a, b) => Number(b.table === ownerOf(b.file)) - Number(a.table === ownerOf(a.file))),
  identifiers = all("identifiers"),
  words = all("words"),
  texts = all("texts");
const moves = Object.assign({}, ...tables.map((t) => t.moves ?? {}));

const glob = (g) =>
  new RegExp(
    `^${g
      .replace(/[.+^$()|[\]\\]/g, "\\$&")
      .replace(/\{([^}]*)\}/g, (_, s) => `(?:${s.split(",").join("|")})`)
      .replace(/\*\*\/?/g, "\u0001")
      .replace(/\*/g, "[^/]*")
      .replaceAll("\u0001", ".*")}$`,
  );
const globs = (list) => {
  const res = list.map(glob);
  return (f) => res.some((r) => r.test(f));
};
const applies = (rule) => {
  const on = rule.files ? globs(rule.files) : () => true;
  const off = rule.not ? globs(rule.not) : () => false;
  return (f) => on(f) && !off(f);
};
for (const r of [...identifiers, ...words, ...texts]) r.on = applies(r);

const listed = execFileSync("git", ["ls-files"], { cwd: out, encoding: "utf8", maxBuffer: 1e9 }).split("\n").filter(Boolean);
const TEXT = /\.(ts|mts|cts|tsx|mjs|cjs|js|sql|md|json|ya?ml|sh|py|txt|toml|mts)$|^\.ci\/run$|Dockerfile|\.service$/;
const LEFT_OUT = /^(package-lock\.json|bench\/package-lock\.json|CHANGELOG\.md|docs\/adr\/|bench\/results\/|scripts\/rename\/)|\.svg$/;
const isTs = (f) => /\.(ts|mts|cts)$/.test(f);
const isJs = (f) => /\.(ts|mts|cts|mjs|cjs|js)$/.test(f);
const files = listed.filter((f) => TEXT.test(f) && !LEFT_OUT.test(f) && existsSync(join(out, f)));
const moveFiles = listed.filter((f) => TEXT.test(f) && !/package-lock\.json$|bench\/results\//.test(f) && existsSync(join(out, f))); // links in docs/adr and the changelog follow, too
const content = new Map(moveFiles.map((f) => [f, readFileSync(join(out, f), "utf8")]));
for (const f of files) if (!content.has(f)) content.set(f, readFileSync(join(out, f), "utf8"));
const report = [];
const say = (line) => report.push(line);

/* 1. symbols */
if (symbols.length) {
  const rootNames = files.filter(isTs).map((f) => join(out, f));
  const parsed = ts.getParsedCommandLineOfConfigFile(
    join(out, "tsconfig.test.json"),
    {},
    { ...ts.sys, onUnRecoverableConfigFileDiagnostic: () => {} },
  );
  const host = {
    getCompilationSettings: () => ({ ...parsed.options, skipLibCheck: true }),
    getScriptFileNames: () => rootNames,
    getScriptVersion: () => "1",
    getScriptSnapshot: (f) => {
      const c = content.get(relative(out, f)) ?? (existsSync(f) ? readFileSync(f, "utf8") : undefined);
      return c === undefined ? undefined : ts.ScriptSnapshot.fromString(c);
    },
    getCurrentDirectory: () => out,
    getDefaultLibFileName: ts.getDefaultLibFilePath,
    fileExists: ts.sys.fileExists,
    readFile: ts.sys.readFile,
    readDirectory: ts.sys.readDirectory,
    directoryExists: ts.sys.directoryExists,
    getDirectories: ts.sys.getDirectories,
    realpath: ts.sys.realpath,
  };
  const service = ts.createLanguageService(host);
  const program = service.getProgram();
  const edits = new Map(); // file → Map(start → { end, text, from })
  const declarationOf = (source, path) => {
    const [first, ...rest] = path.replace(/\((\w+)\)$/, ".$1").split(".");
    let found = [];
    const nameOf = (n) =>
      n.name && (ts.isIdentifier(n.name) || ts.isPrivateIdentifier(n.name) || ts.isStringLiteral(n.name)) ? n.name.text : undefined;
    const top = (n) => {
      if (ts.isVariableStatement(n))
        for (const d of n.declarationList.declarations) {
          if (nameOf(d) === first) found.push(d);
        }
      else if (nameOf(n) === first) found.push(n);
    };
    source.statements.forEach(top);
    if (!found.length) {
      const deep = (n) => {
        if (
          nameOf(n) === first &&
          (ts.isVariableDeclaration(n) || ts.isFunctionLike(n) || ts.isClassLike(n) || ts.isInterfaceDeclaration(n) || ts.isTypeAliasDeclaration(n))
        )
          found.push(n);
        ts.forEachChild(n, deep);
      };
      deep(source);
    }
    for (const part of rest) {
      const next = [];
      for (const f of found) {
        // Every member or parameter of that name, nearest depth first.
        let level = [f],
          hits = [];
        while (level.length && !hits.length) {
          const below = [];
          for (const n of level)
            ts.forEachChild(n, (c) => {
              below.push(c);
            });
          hits = below.filter(
            (c) =>
              (ts.isPropertySignature(c) ||
                ts.isPropertyDeclaration(c) ||
                ts.isMethodSignature(c) ||
                ts.isMethodDeclaration(c) ||
                ts.isPropertyAssignment(c) ||
                ts.isShorthandPropertyAssignment(c) ||
                ts.isParameter(c) ||
                ts.isEnumMember(c) ||
                ts.isGetAccessor(c) ||
                ts.isSetAccessor(c)) &&
              (nameOf(c) === part || nameOf(c) === `#${part}`),
          );
          level = below;
        }
        next.push(...hits);
      }
      found = next;
    }
    return found.map((d) => d.name);
  };
  for (const rule of symbols) {
    const source = program.getSourceFile(join(out, rule.file));
    if (!source) {
      say(`symbols ${rule.table}: no file ${rule.file}`);
      continue;
    }
    const names = declarationOf(source, rule.name);
    if (!names.length) {
      say(`symbols ${rule.table}: no ${rule.name} in ${rule.file}`);
      continue;
    }
    const isMember = rule.name.includes(".");
    const _start0 = names[0].getStart(source);
    for (const name of names) {
      let locations;
      try {
        locations = service.findRenameLocations(join(out, rule.file), name.getStart(source), false, false, false);
      } catch (e) {
        say(`symbols ${rule.table}: ${rule.name} in ${rule.file}: ${e.message.split("\n")[0]}`);
        continue;
      }
      for (const { fileName, textSpan } of locations ?? []) {
        const file = relative(out, fileName);
        if (!content.has(file)) continue;
        const s = program.getSourceFile(fileName);
        const node = ts.getTokenAtPosition ? ts.getTokenAtPosition(s, textSpan.start) : undefined;
        const old = content.get(file).slice(textSpan.start, textSpan.start + textSpan.length);
        let text = old.startsWith("#") && !rule.to.startsWith("#") ? `#${rule.to}` : rule.to;
        if (node && ts.isShorthandPropertyAssignment(node.parent) && node.parent.name === node)
          text = isMember ? `${rule.to}: ${old}` : `${old}: ${rule.to}`;
        const of = edits.get(file) ?? edits.set(file, new Map()).get(file);
        const before = of.get(textSpan.start);
        if (before && before.text !== text) {
          // A shorthand whose property and variable are both renamed.
          const [a, b] = [before.text.split(": "), text.split(": ")];
          if (a.length === 2 && b.length === 2)
            of.set(textSpan.start, { ...before, text: `${a[0] === old ? b[0] : a[0]}: ${a[1] === old ? b[1] : a[1]}` });
          else say(`symbols: ${file}: ${old} becomes ${before.text} (${before.rule.table}) and ${text} (${rule.table} ${rule.name})`);
          continue;
        }
        of.set(textSpan.start, { end: textSpan.start + textSpan.length, text, rule });
        rule.used++;
      }
    }
    if (!rule.used) say(`symbols ${rule.table}: nothing renamed for ${rule.name} in ${rule.file}`);
  }
  for (const [file, of] of edits) {
    let text = content.get(file);
    for (const [start, e] of [...of].sort((a, b) => b[0] - a[0])) text = text.slice(0, start) + e.text + text.slice(e.end);
    content.set(file, text);
  }
}

/** Ranges of a TypeScript text: code, string or comment. */
function regions(file, text) {
  const kinds = new Uint8Array(text.length).fill(2); // comments and blanks
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true, ts.ScriptKind.TS);
  const visit = (node) => {
    if (
      ts.isStringLiteral(node) ||
      ts.isNoSubstitutionTemplateLiteral(node) ||
      ts.isTemplateHead(node) ||
      ts.isTemplateMiddle(node) ||
      ts.isTemplateTail(node) ||
      ts.isRegularExpressionLiteral(node)
    ) {
      kinds.fill(1, node.getStart(source), node.end);
      return;
    }
    const children = node.getChildren(source);
    if (!children.length) {
      kinds.fill(0, node.getStart(source), node.end);
      return;
    }
    for (const c of children) if (c.kind < ts.SyntaxKind.FirstJSDocNode || c.kind > ts.SyntaxKind.LastJSDocNode) visit(c);
  };
  visit(source);
  return { kinds, source };
}

/* 2. identifiers */
const _declaredBefore = new Map();
for (const file of files.filter(isJs)) {
  const rules = identifiers.filter((r) => r.on(file));
  if (!rules.length) continue;
  const by = new Map();
  for (const r of rules) if (!by.has(r.from)) by.set(r.from, r);
  const text = content.get(file);
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true, ts.ScriptKind.TS);
  const found = [];
  const visit = (node) => {
    if (ts.isIdentifier(node) || ts.isPrivateIdentifier(node)) {
      const isPrivate = node.text.startsWith("#");
      const r = by.get(isPrivate ? node.text.slice(1) : node.text) ?? by.get(node.text);
      if (r) {
        found.push([node.getStart(source), node.end, isPrivate && !r.to.startsWith("#") ? `#${r.to}` : r.to]);
        r.used++;
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  checkScopes(file, source, (n) => by.get(n)?.to ?? n);
  let next = text;
  for (const [a, b, to] of found.sort((x, y) => y[0] - x[0])) next = next.slice(0, a) + to + next.slice(b);
  content.set(file, next);
}

/** Two declarations, one in the scope of the other, that get one name. */
function checkScopes(file, source, rename) {
  const walk = (node, above) => {
    let scope = above;
    const isScope =
      ts.isFunctionLike(node) ||
      ts.isBlock(node) ||
      ts.isSourceFile(node) ||
      ts.isForStatement(node) ||
      ts.isForOfStatement(node) ||
      ts.isCatchClause(node) ||
      ts.isModuleBlock(node) ||
      ts.isClassLike(node);
    if (isScope) scope = { above, names: new Map() };
    const add = (name) => {
      const to = rename(name);
      for (let s = scope; s; s = s.above)
        for (const other of s.names.keys())
          if (other !== name && rename(other) === to && (to !== other || to !== name)) {
            say(`collision ${file}: ${other} and ${name} both become ${to}`);
          }
      scope.names.set(name, to);
    };
    const bind = (n) => {
      if (ts.isIdentifier(n)) add(n.text);
      else for (const e of n.elements ?? []) if (e.name) bind(e.name);
    };
    if (ts.isVariableDeclaration(node) || ts.isParameter(node)) bind(node.name);
    else if ((ts.isFunctionDeclaration(node) || ts.isClassDeclaration(node)) && node.name) {
      const s = scope;
      scope = above ?? scope;
      add(node.name.text);
      scope = s;
    } else if (ts.isImportSpecifier(node) || ts.isNamespaceImport(node)) add(node.name.text);
    ts.forEachChild(node, (c) => walk(c, scope));
  };
  walk(source, undefined);
}

/* 3. words */
const pluralOf = (w) => (/(s|x|ch|sh)$/.test(w) ? `${w}es` : /[^aeiou]y$/.test(w) ? `${w.slice(0, -1)}ies` : `${w}s`);
const forms = new Map(); // first word → [{ words, to: words, rule }]
for (const r of words) {
  const from = r.from.toLowerCase().split(/[\s_-]+/),
    to = r.to.split(/[\s_-]+/);
  const add = (f, t) => (forms.get(f[0]) ?? forms.set(f[0], []).get(f[0])).push({ from: f, to: t, rule: r });
  add(from, to);
  const [fp, tp] = r.plural ?? [pluralOf(from.at(-1)), pluralOf(to.at(-1))];
  if (r.plural !== false) add([...from.slice(0, -1), fp.split(/[\s_-]+/).at(-1)], r.plural ? tp.split(/[\s_-]+/) : [...to.slice(0, -1), tp]);
}
for (const list of forms.values()) list.sort((a, b) => b.from.length - a.from.length);
const humps = (part) => part.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[A-Z]/g) ?? [part];
const cap = (w) => w[0].toUpperCase() + w.slice(1);

function renameToken(token, file, context) {
  if (!/[a-z]/i.test(token)) return token;
  const sep = token.includes("_") ? "_" : token.includes("-") ? "-" : "";
  const parts = (sep ? token.split(sep) : [token]).map((p) => (p ? humps(p) : [""]));
  const flat = parts.flatMap((hs, i) => hs.map((h) => ({ h, i })));
  let changed = false;
  const made = []; // { h, i }
  for (let k = 0; k < flat.length; k++) {
    const list = forms.get(flat[k].h.toLowerCase());
    const hit = list?.find((f) => f.from.every((w, j) => flat[k + j]?.h.toLowerCase() === w) && f.rule.on(file));
    if (!hit) {
      made.push(flat[k]);
      continue;
    }
    changed = true;
    hit.rule.used++;
    const { h, i } = flat[k];
    const upper = h.length > 1 ? h === h.toUpperCase() : h === h.toUpperCase() && flat.every((x) => x.h === x.h.toUpperCase());
    const capital = !upper && h[0] !== h[0].toLowerCase();
    const bare = flat.length === hit.from.length && parts.length === (sep ? hit.from.length : 1);
    if (bare && hit.to.length > 1 && !sep) {
      const style = upper ? "UPPER" : context;
      if (style === "UPPER") return hit.to.map((w) => w.toUpperCase()).join("_");
      if (style === "camel") return hit.to.map((w, n) => (n ? cap(w) : capital ? cap(w) : w)).join("");
      if (style === "kebab") return hit.to.join("-");
      if (style === "snake") return hit.to.join("_");
      const said = hit.to.join(" ");
      return capital ? cap(said) : said;
    }
    hit.to.forEach((w, n) => {
      const first = made.length === 0 || (sep && (n === 0 ? made.at(-1)?.i !== i : false));
      const word = upper ? w.toUpperCase() : sep ? (n === 0 && capital ? cap(w) : w) : n === 0 ? (capital ? cap(w) : w) : cap(w);
      made.push({ h: word, i: sep && n > 0 ? `${i}+${n}` : i, upper });
      void first;
    });
    k += hit.from.length - 1;
  }
  if (!changed) return token;
  if (!sep) {
    // An all-upper word in camel keeps its form: URL, ID.
    const upperToken = flat.every((x) => x.h === x.h.toUpperCase()) && token.length > 1;
    return upperToken
      ? made
          .map((m) => m.h)
          .join("_")
          .toUpperCase()
      : made.map((m) => m.h).join("");
  }
  let text = "",
    last;
  for (const m of made) {
    text += last !== undefined && m.i !== last ? sep + m.h : m.h;
    last = m.i;
  }
  return text;
}
const TOKEN = /[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)*/g;
const SQLISH =
  /\b(select|insert into|update pawl|delete from|create (table|index|unique|function|view)|alter table|returning|order by|pawl\.[a-z_]+|from pawl|on conflict)\b/;

const compound = [...forms.values()].flat().filter((f) => f.from.length > 1);
for (const file of words.length ? files : []) {
  let text = content.get(file);
  let kinds,
    source,
    sqlRanges,
    memberNames = new Set();
  const ts_ = isJs(file);
  if (ts_) {
    ({ kinds, source } = regions(file, text));
    checkScopes(file, source, (n) => renameToken(n, file, "camel"));
    sqlRanges = [];
    const visit = (n) => {
      if (ts.isTemplateExpression(n) || ts.isNoSubstitutionTemplateLiteral(n) || ts.isStringLiteral(n)) {
        if (SQLISH.test(n.getText(source))) sqlRanges.push([n.getStart(source), n.end]);
      }
      // Names of members in types: Pick<Store, "seats">, NewJob["tail"].
      if (ts.isLiteralTypeNode(n)) {
        let up = n.parent;
        while (ts.isUnionTypeNode(up)) up = up.parent;
        if (
          ts.isIndexedAccessTypeNode(up) ||
          (ts.isTypeReferenceNode(up) && /^(Pick|Omit)$/.test(up.typeName.getText(source))) ||
          (ts.isExpressionWithTypeArguments(up) && /^(Pick|Omit)$/.test(up.expression.getText(source)))
        )
          memberNames.add(n.getStart(source) + 1);
      }
      ts.forEachChild(n, visit);
    };
    visit(source);
  }
  const contextAt = (at, end) => {
    if ((text[at - 1] === "-" && /\w/.test(text[at - 2] ?? "")) || (text[end] === "-" && /\w/.test(text[end + 1] ?? ""))) return "kebab";
    if (file.endsWith(".sql")) {
      const line = text.lastIndexOf("\n", at) + 1;
      const c = text.indexOf("--", line);
      return c >= 0 && c < at ? "prose" : "snake";
    }
    if (ts_) {
      if (kinds[at] === 0) return "camel";
      if (memberNames.has(at)) return "camel";
      if (kinds[at] === 1)
        return sqlRanges.some(([a, b]) => at >= a && at < b)
          ? "snake"
          : /["'`]/.test(text[at - 1] ?? "") && /["'`]/.test(text[end] ?? "")
            ? "snake"
            : "prose";
      return text[at - 1] === "`" || text[end] === "`" ? "camel" : "prose";
    }
    if (file.endsWith(".md")) return text[at - 1] === "`" || text[end] === "`" || /[._]/.test(text[at - 1] ?? "") ? "snake" : "prose";
    return "snake";
  };
  // Words of several parts in prose stand with blanks between.
  for (const f of compound) {
    if (!f.rule.on(file)) continue;
    const re = new RegExp(`\\b(${f.from.join("[ -]")})\\b`, "gi");
    if (!re.test(text)) continue;
    text = text.replace(re, (m) => {
      f.rule.used++;
      const said = f.to.join(" ");
      return m[0] === m[0].toUpperCase() && m[0] !== m[0].toLowerCase() ? cap(said) : said;
    });
    if (ts_) ({ kinds, source } = regions(file, text));
  }
  // Paths of files are the moves' affair.
  const paths = [
    ...text.matchAll(
      /(?<![\w])(?:\.{1,2}\/)?(?:[\w.*{},-]+\/)*[\w.*{},-]+\.(?:ts|js|mts|mjs|cjs|sql|md|json|svg|yml|sh)\b|["'](?:\.{1,2}\/|packages\/|test\/|bench\/)[^"'\n]*["']/g,
    ),
  ].map((m) => [m.index, m.index + m[0].length]);
  let p = 0;
  content.set(
    file,
    text.replace(TOKEN, (token, at) => {
      while (p < paths.length && paths[p][1] <= at) p++;
      if (p < paths.length && paths[p][0] <= at) return token;
      return renameToken(token, file, contextAt(at, at + token.length));
    }),
  );
}

/* 4. texts */
for (const r of texts) {
  const re = r.regex ? new RegExp(r.from, "g") : undefined;
  for (const file of r.files ? [...content.keys()] : files) {
    if (!r.on(file)) continue;
    const text = content.get(file);
    const next = re ? text.replace(re, r.to) : text.split(r.from).join(r.to);
    if (next !== text) {
      r.used++;
      content.set(file, next);
    }
  }
}

/* `{ x: x }`, `import { x as x }` */
for (const file of files.filter(isJs)) {
  const text = content.get(file);
  if (!/\b(\w+)(: | as )\1\b/.test(text)) continue;
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true, ts.ScriptKind.TS);
  const cuts = [];
  const visit = (n) => {
    if (ts.isPropertyAssignment(n) && ts.isIdentifier(n.name) && ts.isIdentifier(n.initializer) && n.name.text === n.initializer.text)
      cuts.push([n.getStart(source), n.end, n.name.text]);
    else if (
      ts.isBindingElement(n) &&
      n.propertyName &&
      ts.isIdentifier(n.propertyName) &&
      ts.isIdentifier(n.name) &&
      n.propertyName.text === n.name.text &&
      !n.dotDotDotToken
    )
      cuts.push([n.propertyName.getStart(source), n.name.end, n.name.text]);
    else if ((ts.isImportSpecifier(n) || ts.isExportSpecifier(n)) && n.propertyName && n.propertyName.text === n.name.text)
      cuts.push([n.propertyName.getStart(source), n.name.end, n.name.text]);
    ts.forEachChild(n, visit);
  };
  visit(source);
  let next = text;
  for (const [a, b, to] of cuts.sort((x, y) => y[0] - x[0])) next = next.slice(0, a) + to + next.slice(b);
  content.set(file, next);
}

/* 5. moves */
const to = new Map();
for (const [a, b] of Object.entries(moves)) {
  if (!listed.includes(a)) {
    say(`moves: no file ${a}`);
    continue;
  }
  if (a !== b) to.set(a, b);
  const ta = a.replace(/\.ts$/, ".test.ts"),
    tb = b.replace(/\.ts$/, ".test.ts");
  if (a.endsWith(".ts") && !a.endsWith(".test.ts") && listed.includes(ta) && !moves[ta] && ta !== tb) to.set(ta, tb);
}
const taken = new Map();
for (const f of listed) {
  const n = to.get(f) ?? f;
  if (taken.has(n)) say(`moves: ${f} and ${taken.get(n)} both become ${n}`);
  taken.set(n, f);
}
const listedSet = new Set(listed);
const newPath = (f) => to.get(f) ?? f;
const rel = (fromFile, toFile) => {
  const r = posix.relative(posix.dirname(fromFile), toFile);
  return r.startsWith(".") ? r : `./${r}`;
};
/** The file that a relative specifier names, by today's paths. */
function target(file, spec) {
  const path = posix.normalize(posix.join(posix.dirname(file), spec));
  for (const [cand, back] of [
    [path, (p) => p],
    [path.replace(/\.js$/, ".ts"), (p) => p.replace(/\.ts$/, ".js")],
    [path.replace(/\.mjs$/, ".mts"), (p) => p.replace(/\.mts$/, ".mjs")],
    [path.replace(/\.mjs$/, ".d.mts"), (p) => p.replace(/\.d\.mts$/, ".mjs")],
    [path.replace(/\.mjs$/, ".mts"), (p) => p.replace(/\.mts$/, ".mjs")],
  ])
    if (listedSet.has(cand)) return { file: cand, back };
}
if (to.size) {
  const basenames = new Map();
  for (const f of listed) {
    const b = basename(f);
    basenames.set(b, basenames.has(b) ? null : f);
  }
  const literal = [...to].map(([a, b]) => [a, b]);
  for (const file of moveFiles.filter((f) => !f.startsWith("scripts/rename/"))) {
    let text = content.get(file);
    const self = newPath(file);
    // Quoted relative paths, and links.
    const fix = (spec) => {
      const [, path, rest] = /^([^?#]*)(.*)$/.exec(spec);
      const t = target(file, path);
      if (!t) return spec;
      const moved = newPath(t.file);
      if (moved === t.file && self === file) return spec;
      let r = rel(self, t.back(moved));
      if (!path.startsWith(".")) r = r.replace(/^\.\//, "");
      return r + rest;
    };
    if (isJs(file))
      text = text.replace(/(["'`])(\.\.?\/[^"'`\n$]+)\1/g, (_m, q, spec) => {
        const fixed = fix(spec);
        if (fixed === spec && self !== file && !target(file, spec)) {
          // A folder, or a file that git does not know.
          const path = posix.normalize(posix.join(posix.dirname(file), spec));
          const dirs = listed.filter((f) => f.startsWith(`${path.replace(/\/$/, "")}/`));
          if (dirs.length || posix.normalize(path).split("/").length <= 1) {
            return q + rel(self, path) + (spec.endsWith("/") ? "/" : "") + q;
          }
          if (!/^\.\.?\/?$/.test(spec)) say(`path ${file}: ${spec} is left as it is`);
        }
        return q + fixed + q;
      });
    else if (file.endsWith(".md")) text = text.replace(/\]\(([^)\s]+)\)/g, (m, spec) => (/^[a-z]+:|^#|^\//.test(spec) ? m : `](${fix(spec)})`));
    for (const [a, b] of literal) if (text.includes(a)) text = text.split(a).join(b);
    // Short mentions: core/offer.ts, offer.ts
    text = text.replace(/(?<![\w./-])((?:[\w-]+\/)*)([\w.-]+\.(?:ts|sql|mjs|md))\b/g, (m, dirs, base) => {
      if (dirs) {
        const hits = [...to.keys()].filter((a) => a.endsWith(`/${dirs}${base}`));
        if (hits.length !== 1) return m;
        const b = to.get(hits[0]);
        const prefix = hits[0].slice(0, hits[0].length - dirs.length - base.length);
        return b.startsWith(prefix) ? b.slice(prefix.length) : b;
      }
      const f = basenames.get(base);
      return f && to.has(f) ? basename(to.get(f)) : m;
    });
    content.set(file, text);
  }
}

for (const [file, text] of content) {
  const path = join(out, newPath(file));
  mkdirSync(dirname(path), { recursive: true });
  if (newPath(file) !== file) rmSync(join(out, file), { force: true });
  writeFileSync(path, text);
}
// What is moved but is no text.
for (const [a, b] of to)
  if (!content.has(a) && existsSync(join(out, a))) {
    mkdirSync(dirname(join(out, b)), { recursive: true });
    renameSync(join(out, a), join(out, b));
  }
// Moved files may have been removed after another took their path: written last, so nothing is lost.
for (const [file, text] of content) if (!existsSync(join(out, newPath(file)))) writeFileSync(join(out, newPath(file)), text);
try {
  execFileSync("find", [out, "-type", "d", "-empty", "-not", "-path", "*/node_modules/*", "-not", "-path", "*/.git/*", "-delete"]);
} catch {}
if (!argv.includes("--no-format"))
  try {
    execFileSync(join(out, "node_modules/.bin/biome"), ["check", "--write", "--linter-enabled=true", "."], { cwd: out, stdio: "pipe" });
  } catch (e) {
    say(`biome: ${String(e.stdout).split("\n").slice(-12).join(" | ").slice(0, 600)}`);
  }
for (const r of [...symbols, ...identifiers, ...words, ...texts])
  if (!r.used) say(`unused (${r.table}): ${JSON.stringify({ file: r.file, files: r.files, name: r.name, from: r.from, to: r.to })}`);
console.log(report.join("\n"));
console.log(
  `symbols ${symbols.length}, identifiers ${identifiers.length}, words ${words.length}, texts ${texts.length}, moves ${to.size}; ${report.length} remarks; ${out}`,
);
