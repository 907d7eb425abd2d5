import type { Listener, Subscription } from "./driver.js";
import type { PgliteClient } from "./pglite-client.js";

interface Channel {
  readonly listeners: Set<Listener>;
  readonly hearing: Promise<unknown>;
}

/** Who listens to what. The connection cannot be lost while the thread lives, so hearing begins once and ends with it. */
export class PgliteChannels {
  readonly #channels = new Map<string, Channel>();

  listen(client: PgliteClient, name: string, listener: Listener): Subscription {
    const channel = this.#channels.get(name) ?? this.#open(client, name);
    channel.listeners.add(listener);
    const stillThere = (then: () => void) => channel.listeners.has(listener) && then();
    channel.hearing.then(
      () => stillThere(() => listener.up()),
      (error: unknown) => stillThere(() => listener.down(error)),
    );
    const more: Subscription[] = [];
    return {
      also: (another) => {
        more.push(this.listen(client, another, listener));
      },
      close: async () => {
        await Promise.all(more.map((each) => each.close()));
        if (!channel.listeners.delete(listener) || channel.listeners.size > 0) return;
        this.#channels.delete(name);
        await client.ask({ kind: "unlisten", channel: name }).catch(() => {}); // then nothing is heard anyway
      },
    };
  }

  notify(name: string, payload: string): void {
    for (const listener of this.#channels.get(name)?.listeners ?? []) listener.message(payload, name);
  }

  end(error: unknown): void {
    for (const { listeners } of this.#channels.values()) for (const listener of listeners) listener.down(error);
    this.#channels.clear();
  }

  #open(client: PgliteClient, name: string): Channel {
    const channel = { listeners: new Set<Listener>(), hearing: client.ask({ kind: "listen", channel: name }) };
    this.#channels.set(name, channel);
    return channel;
  }
}
