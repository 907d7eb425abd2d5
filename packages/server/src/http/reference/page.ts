import type { ErrorCode } from "pawl";
import { errorTable } from "pawl/service";
import type { AnyRoute } from "../contract/route.js";
import { STATUS } from "../status.js";
import { CODES, nounOf } from "./openapi.js";
import { STYLE } from "./style.js";

/** The contract for people: one page without scripts or anything from elsewhere, so that it works wherever the service does. */
export function pageOf(contract: readonly AnyRoute[], version: string): string {
  const nouns = [...new Set(contract.map(nounOf))];
  return `${headOf("Pawl API")}
<body>
<nav><a class="brand" href="#top">Pawl <small>${escaped(version)}</small></a>
${nouns.map((noun) => navOf(noun, contract)).join("\n")}
<h4><a href="#errors">errors</a></h4></nav>
<main id="top">
<h1>Pawl API</h1>
<p>JSON over HTTP. The same as <a href="/v1/openapi.json">OpenAPI 3.1</a>. Send your key as <code>Authorization: Bearer …</code>; what it may see and change is decided by its tenant and role. Every write takes an <code>Idempotency-Key</code>. Lists are read page by page: <code>next</code> of one is <code>after</code> of the following.</p>
${nouns.map((noun) => sectionOf(noun, contract)).join("\n")}
<section><h2 id="errors">errors</h2>
<p>Every error has one shape, <code>application/problem+json</code>: <code>code</code> is stable, <code>detail</code> says what happened and what to do, <code>pointer</code> names the field, <code>requestId</code> is in the service's log too.</p>
<table><thead><tr><th>status</th><th>code</th><th>what happened</th><th>what to do</th></tr></thead><tbody>
${CODES.map(([code, status]) => errorRow(code, status)).join("\n")}
</tbody></table></section>
</main>
</body></html>`;
}

/** The page of one error code, with its cause and its cure; undefined: there is no such code. */
export function errorPageOf(code: string, version: string): string | undefined {
  if (!isCode(code)) return undefined;
  const [message, help] = errorTable[code];
  return `${headOf(`${code} · Pawl API`)}
<body>
<nav><a class="brand" href="/v1/docs">Pawl <small>${escaped(version)}</small></a>
<h4><a href="/v1/docs#errors">errors</a></h4></nav>
<main>
<h1><code>${escaped(code)}</code></h1>
<p>Status ${STATUS[code]}. Texts in braces are the <code>details</code> of the problem.</p>
<h2>What happened</h2>
<p>${escaped(message)}</p>
<h2>What to do</h2>
<p>${escaped(help)}</p>
</main>
</body></html>`;
}

function isCode(code: string): code is ErrorCode {
  return Object.hasOwn(errorTable, code);
}

function headOf(title: string): string {
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${escaped(title)}</title><style>${STYLE}</style></head>`;
}

function navOf(noun: string, contract: readonly AnyRoute[]): string {
  const links = contract.filter((route) => nounOf(route) === noun).map(({ id }) => `<li><a href="#${escaped(id)}">${escaped(verbOf(id))}</a></li>`);
  return `<h4><a href="#of-${escaped(noun)}">${escaped(noun)}</a></h4><ul>${links.join("")}</ul>`;
}

function verbOf(id: string): string {
  return id.slice(id.indexOf(".") + 1);
}

function sectionOf(noun: string, contract: readonly AnyRoute[]): string {
  const own = contract.filter((route) => nounOf(route) === noun);
  return `<section><h2 id="of-${escaped(noun)}">${escaped(noun)}</h2>${own.map(routeOf).join("\n")}</section>`;
}

function routeOf(route: AnyRoute): string {
  const { id, method, path, summary, description, policy, params, query, body, status, otherStatuses = {}, answer, example } = route;
  const access = "open" in policy ? "open to everybody" : `<code>${policy.action}</code>${policy.scope === "everyone" ? ", for all tenants" : ""}`;
  return `<article id="${escaped(id)}">
<header><span class="method ${method.toLowerCase()}">${method}</span> <code class="path">${escaped(path).replaceAll(/\{(\w+)\}/g, "<em>{$1}</em>")}</code><span class="who">${access}</span></header>
<p><strong>${escaped(summary)}.</strong> ${inline(description ?? "")}</p>
${fieldsOf("path", params)}${fieldsOf("query", query)}${fieldsOf("body", body)}
${
  example === undefined
    ? ""
    : `<pre>curl -X ${method} $PAWL_URL${escaped(path)} \\
  -H "Authorization: Bearer $PAWL_API_KEY" -H "Content-Type: application/json" \\
  -d '${escaped(JSON.stringify(example))}'</pre>`
}
${[[status, answer.means] as const, ...Object.entries(otherStatuses)].map(([code, means]) => `<p class="answer"><span class="status">${code}</span> ${inline(means)}</p>`).join("\n")}
${answer.body === undefined ? "" : `<details><summary>answer</summary>${fieldsOf("", answer.body)}</details>`}
</article>`;
}

interface SchemaShape {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, SchemaShape>>;
  readonly required?: readonly string[];
  readonly items?: SchemaShape;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly SchemaShape[];
  readonly const?: unknown;
  readonly format?: string;
  readonly maximum?: number;
  readonly minimum?: number;
}

function fieldsOf(caption: string, schema: unknown): string {
  const rows = rowsOf(schema as SchemaShape | undefined, "");
  if (rows.length === 0) return "";
  return `<table class="fields">${caption === "" ? "" : `<caption>${caption}</caption>`}<tbody>${rows.join("")}</tbody></table>`;
}

/** Fields, and those inside them, by path. */
function rowsOf(shape: SchemaShape | undefined, prefix: string): readonly string[] {
  const { properties = {}, required = [] } = shape ?? {};
  return Object.entries(properties).flatMap(([name, inner]) => {
    const item = inner.items ?? inner.anyOf?.find(({ properties: own }) => own !== undefined) ?? inner;
    const own = `<tr><td><code>${escaped(prefix + name)}</code>${required.includes(name) ? '<b title="required">*</b>' : ""}</td><td class="type">${escaped(typeOf(inner))}</td><td>${inline(inner.description ?? "")}</td></tr>`;
    return [own, ...rowsOf(item, `${prefix}${name}${inner.items === undefined ? "." : "[]."}`)];
  });
}

function typeOf({ type, enum: choices, items, anyOf, const: only, format, minimum, maximum }: SchemaShape): string {
  if (choices !== undefined) return choices.map((one) => JSON.stringify(one)).join(" | ");
  if (only !== undefined) return JSON.stringify(only);
  if (anyOf !== undefined) return anyOf.map(typeOf).join(" | ");
  if (items !== undefined) return `${typeOf(items)}[]`;
  const range = minimum === undefined && maximum === undefined ? "" : ` ${minimum ?? ""}…${maximum ?? ""}`;
  const typeName = format === "date-time" ? "time" : [type ?? "any"].flat().join(" | ");
  return `${typeName}${range}`;
}

function errorRow(code: string, status: number): string {
  const [message, help] = errorTable[code as keyof typeof errorTable];
  return `<tr id="${escaped(code)}"><td>${status}</td><td><a href="/v1/docs/errors/${escaped(code)}"><code>${escaped(code)}</code></a></td><td>${escaped(message)}</td><td>${escaped(help)}</td></tr>`;
}

/** Words in backticks are code; nothing else is marked up. */
function inline(text: string): string {
  return escaped(text).replaceAll(/`([^`]+)`/g, "<code>$1</code>");
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
