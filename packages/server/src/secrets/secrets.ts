import { ConfigError, reasonOf } from "../config/problem.js";
import { nameOf, type Reference } from "./reference.js";
import { type Environment, Redactor, Secret } from "./secret.js";

/** The secrets of one process, each read in one place, and none of them ever printed. */
export class Secrets {
  readonly #redactor = new Redactor();
  readonly #secrets = new Map<string, Secret>();

  constructor(private readonly env: Environment) {}

  at(reference: Reference): Secret {
    const key = JSON.stringify(reference);
    const existing = this.#secrets.get(key);
    if (existing !== undefined) return existing;
    const secret = new Secret(reference, this.env, this.#redactor);
    this.#secrets.set(key, secret);
    return secret;
  }

  /** The value of a setting; if it cannot be had, that is what is wrong `where` the setting was given. */
  async read(where: string, reference: Reference): Promise<string> {
    try {
      return await this.at(reference).read();
    } catch (error) {
      throw new ConfigError([{ where, what: `it cannot be read: ${reasonOf(error)}`, help: `see that ${nameOf(reference)} is there for this user` }]);
    }
  }

  /** The text without them. */
  clean(text: string): string {
    return this.#redactor.clean(text);
  }
}
