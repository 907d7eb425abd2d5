import { checkKeys, checkObject, checkText, checkWhole, invalid, show } from "../core/values/option.js";

/** One page of a list. The page without `next` is the last one, however short the others are. */
export interface Page<T> {
  readonly items: readonly T[];
  /** the `cursor` of the following page: an opaque text */
  readonly next?: string;
}

/** The part of a list that a caller asks for. */
export interface PageOptions {
  /** items of a page; 50 unless set, at most 1,000 */
  readonly limit?: number;
  /** the `next` of the page before; the first page if left out */
  readonly cursor?: string;
}

/** A list as calls answer it. `await` gives one page; `for await` gives every item from there on. */
export type PagedList<T> = Promise<Page<T>> & AsyncIterable<T>;

const PAGE_KEYS: ReadonlySet<string> = new Set(["limit", "cursor"] satisfies (keyof PageOptions)[]);
const PAGE_SIZE = 50;
const MAX_PAGE_SIZE = 1_000;

/** The places of one list as texts. A cursor of another list is refused. */
export interface CursorFormat<Place> {
  encode(place: Place): string;
  decode(cursor: unknown): Place;
}

/** `parse` reads a place out of parsed JSON, which a caller may have made up; undefined or an error refuses it. */
export function cursorFormat<Place>(list: string, parse: (place: unknown) => Place | undefined): CursorFormat<Place> {
  return {
    encode: (place) => Buffer.from(JSON.stringify([list, place])).toString("base64url"),
    decode(cursor) {
      const place = typeof cursor === "string" ? placeOf(cursor, list, parse) : undefined;
      if (place === undefined) throw invalid("page.cursor", `${show(cursor)} is not the next of a page of this list`);
      return place;
    },
  };
}

/** Places that are numbers, such as how many came before. */
export function numberCursor(list: string): CursorFormat<number> {
  return cursorFormat(list, (place) => (Number.isSafeInteger(place) && (place as number) >= 0 ? (place as number) : undefined));
}

/** Places that are named by texts, such as a tenant and a task. */
export function refCursor<Key extends string>(list: string, keys: readonly Key[]): CursorFormat<Readonly<Record<Key, string>>> {
  return cursorFormat(list, (place) => {
    const parts = keys.map((key) => [key, checkText(key, (place as Record<string, unknown>)[key])] as const);
    return Object.fromEntries(parts) as Record<Key, string>;
  });
}

function placeOf<Place>(cursor: string, list: string, parse: (place: unknown) => Place | undefined): Place | undefined {
  try {
    const [name, place] = JSON.parse(Buffer.from(cursor, "base64url").toString()) as readonly unknown[];
    return name === list ? parse(place) : undefined;
  } catch {
    return undefined;
  }
}

/** Checks a page before it is read or sent. The cursor stays a text. */
export function checkPageOptions(page: PageOptions = {}): PageOptions & { readonly limit: number } {
  checkKeys(checkObject("page", page), PAGE_KEYS, "page.");
  const { limit = PAGE_SIZE, cursor } = page;
  if (cursor !== undefined && typeof cursor !== "string") throw invalid("page.cursor", `${show(cursor)} is not a text`);
  return { limit: checkWhole("page.limit", limit, 1, MAX_PAGE_SIZE), ...(cursor === undefined ? {} : { cursor }) };
}

/** The page in the form that stores take. */
export function readPage<Place>(page: PageOptions | undefined, format: CursorFormat<Place>): { readonly limit: number; readonly after?: Place } {
  const { limit, cursor } = checkPageOptions(page);
  return { limit, ...(cursor === undefined ? {} : { after: format.decode(cursor) }) };
}

/** Makes a list of whatever reads one page of it. The first page is read at once. */
export function pagedList<T>(page: PageOptions | undefined, read: (page: PageOptions | undefined) => Promise<Page<T>>): PagedList<T> {
  const first = (async () => read(page))();
  return Object.assign(first, {
    async *[Symbol.asyncIterator]() {
      for (let current = await first; ; current = await read({ ...page, cursor: current.next })) {
        yield* current.items;
        if (current.next === undefined) return;
      }
    },
  });
}

/** A list of which all comes at once. */
export function wholeList<T>(read: () => Promise<readonly T[]>): PagedList<T> {
  return pagedList(undefined, async () => ({ items: await read() }));
}

/** Reads one page of rows in order. One row more than asked for says whether another page follows. */
export async function pageOfRows<Row, Place, T>(
  { limit, ...after }: { readonly limit: number; readonly after?: Place },
  format: CursorFormat<Place>,
  read: (request: { readonly limit: number; readonly after?: Place }) => Promise<readonly Row[]>,
  { place, view }: { readonly place: (row: Row) => Place; readonly view: (row: Row) => T },
): Promise<Page<T>> {
  const rows = await read({ limit: limit + 1, ...after });
  const last = rows[limit - 1];
  return {
    items: rows.slice(0, limit).map(view),
    ...(rows.length > limit && last !== undefined ? { next: format.encode(place(last)) } : {}),
  };
}

/** A page as JSON carries it, made of views again. */
export function revivedPage<T>(answer: unknown, view: (item: unknown) => T): Page<T> {
  const { items, next } = answer as Page<unknown>;
  return { items: items.map(view), ...(next === undefined ? {} : { next }) };
}

/** All items of a list. */
export async function allItems<T>(list: AsyncIterable<T>): Promise<readonly T[]> {
  const items: T[] = [];
  for await (const item of list) items.push(item);
  return items;
}
