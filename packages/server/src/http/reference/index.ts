import { CONTRACT } from "../contract/index.js";
import { openapiOf } from "./openapi.js";
import { errorPageOf, pageOf } from "./page.js";

/** Both are the same for everybody and for as long as the process lives: they are made once. */
const made = new Map<string, { readonly document: object; readonly page: string }>();

function reference(version: string) {
  let cached = made.get(version);
  if (cached === undefined) {
    cached = { document: openapiOf(CONTRACT, version), page: pageOf(CONTRACT, version) };
    made.set(version, cached);
  }
  return cached;
}

export const openapiDocument = (version: string): object => reference(version).document;
/** The page of one error code; undefined: there is no such code. */
export const errorPage = errorPageOf;
export const referencePage = (version: string): string => reference(version).page;
