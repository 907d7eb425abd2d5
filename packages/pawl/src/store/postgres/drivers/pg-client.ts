import type pg from "pg";

export type Password = () => string | Promise<string>;

/**
 * The client of a store whose password may change: it is asked for with every connection. (As an option of the driver's it
 * would stand behind the URL, which is taken to have an empty one.)
 */
export function clientWith({ Client }: typeof pg, password: Password | undefined): typeof pg.Client {
  if (password === undefined) return Client;
  return class extends Client {
    constructor(config?: string | pg.ClientConfig) {
      super(config);
      Object.assign(this, { password });
    }
  };
}
