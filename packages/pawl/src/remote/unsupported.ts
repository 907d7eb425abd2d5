import { pawlError } from "../core/values/error.js";

/**
 * Stands for what only a process that opens the store itself can do: whatever is called of it, however deep, rejects and
 * says what it was.
 */
export function unsupported<T>(what: string): T {
  return new Proxy(function refused() {}, {
    get: (_, name) => (isLanguageProbe(name) ? undefined : unsupported(`${what}.${String(name)}`)),
    apply: () => Promise.reject(pawlError("remote_unsupported", { what })),
  }) as T;
}

/** What the language itself asks of every value: whether it is a promise, and how to write it. */
function isLanguageProbe(name: PropertyKey): boolean {
  return typeof name === "symbol" || name === "then" || name === "toJSON";
}

/** The one, with everything it lacks of the other refused. */
export function withUnsupported<Whole extends object>(part: Partial<Whole> & object, what = "pawl"): Whole {
  const bound = new Map<PropertyKey, unknown>();
  return new Proxy(part, {
    get(target, name) {
      if (!(name in target)) return isLanguageProbe(name) ? undefined : unsupported(`${what}.${String(name)}`);
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      // Its private parts know only itself.
      if (!bound.has(name)) bound.set(name, value.bind(target));
      return bound.get(name);
    },
  }) as Whole;
}
