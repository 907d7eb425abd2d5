import { once } from "node:events";
import { createConnection, createServer, type NetConnectOpts, type Server, type Socket } from "node:net";
import type { Address } from "./servers.js";

/** A connection through the proxy, named by the application that made it. */
interface ProxiedConnection {
  readonly client: Socket;
  readonly server: Socket;
  name: string;
  /** nothing passes any more, in either direction, and neither side is told */
  silenced: boolean;
  /** the same until one side is gone; then the other is told */
  stopped: boolean;
}

export interface ProxyFaults {
  /** only connections of this application ("pawl", "pawl listen", "pawl renewal") */
  readonly only?: string;
}

/** Where a connection is made to stand still: at a request that matches, or the so-many-th of them. */
export interface StopPoint {
  readonly at: RegExp;
  readonly nth?: number;
  /** whether the server gets to see the request, and has answered it */
  readonly when: "before" | "after";
}

/**
 * A wire to Postgres that can be cut, refused, silenced and slowed down. A silenced (half-open) connection stays so for
 * ever, as one whose peer has lost its power; after `heal` new ones pass.
 */
export class TcpProxy {
  readonly #pipes = new Set<ProxiedConnection>();
  #upstream: NetConnectOpts;
  #listener: Server | undefined;
  #port = 0;
  #delay = 0;
  #blackhole: ProxyFaults | undefined;
  #lose: { readonly match: RegExp; readonly done: () => void } | undefined;
  #stop: (StopPoint & { left: number; readonly done: () => void }) | undefined;
  readonly #awaited = new Set<{ readonly match: RegExp; readonly done: () => void }>();
  /** connections ever made through it */
  accepted = 0;
  /** pieces of data clients have sent: a statement is one, with its parameters */
  requests = 0;

  private constructor(private readonly to: Address) {
    this.#upstream = endOf(to);
  }

  static async before(to: Address): Promise<TcpProxy> {
    const proxy = new TcpProxy(to);
    await proxy.accept();
    return proxy;
  }

  /** Connections are cut, and new ones lead elsewhere: to the server that took over. */
  forwardTo(server: Address): void {
    this.#upstream = endOf(server);
    this.cut();
  }

  url(database: string): string {
    return `postgres://${this.to.user}@127.0.0.1:${this.#port}/${database}`;
  }

  get open(): number {
    return this.#pipes.size;
  }

  /** Closes connections at once, as a server does that dies. */
  cut({ only }: ProxyFaults = {}): void {
    for (const pipe of this.#pipes) if (only === undefined || pipe.name === only) this.#end(pipe);
  }

  /** Connections are cut and new ones refused, until `accept`. */
  async refuse(): Promise<void> {
    const listener = this.#listener;
    this.#listener = undefined;
    const closed = listener === undefined ? undefined : once(listener, "close");
    listener?.close();
    this.cut();
    await closed;
  }

  async accept(): Promise<void> {
    if (this.#listener !== undefined) return;
    // Half open on purpose: or Node would answer a silenced client's goodbye by itself.
    const listener = createServer({ allowHalfOpen: true }, (client) => this.#connect(client));
    listener.listen(this.#port, "127.0.0.1");
    await once(listener, "listening");
    this.#listener = listener;
    const address = listener.address();
    this.#port = typeof address === "object" && address !== null ? address.port : 0;
  }

  /** Nothing passes any more, and nobody is told. New connections are accepted, and stay silent as well. */
  blackhole(which: ProxyFaults = {}): void {
    this.#blackhole = which;
    for (const pipe of this.#pipes) if (which.only === undefined || pipe.name === which.only) this.#silence(pipe);
  }

  /** New connections pass again. Those that fell silent stay silent. */
  heal(): void {
    this.#blackhole = undefined;
    this.#delay = 0;
  }

  delay(ms: number): void {
    this.#delay = ms;
  }

  /** The next request that matches is carried out by the server; its answer never comes, and the connection is cut. */
  loseAnswer(match: RegExp): Promise<void> {
    return new Promise((done) => {
      this.#lose = { match, done };
    });
  }

  /** Answers when a connection stands still there. It goes on no more: when its process is killed, the server is told. */
  stopAt(stop: StopPoint): Promise<void> {
    return new Promise((done) => {
      this.#stop = { ...stop, left: stop.nth ?? 1, done };
    });
  }

  /** The next request that matches is on its way to the server. */
  request(match: RegExp): Promise<void> {
    return new Promise((done) => this.#awaited.add({ match, done }));
  }

  close(): Promise<void> {
    return this.refuse();
  }

  #connect(client: Socket): void {
    this.accepted++;
    const pipe: ProxiedConnection = { client, server: createConnection(this.#upstream), name: "", silenced: false, stopped: false };
    this.#pipes.add(pipe);
    for (const socket of [pipe.client, pipe.server]) {
      socket.on("error", () => {});
      socket.on("end", () => pipe.silenced || this.#end(pipe));
      socket.on("close", () => pipe.silenced || this.#end(pipe));
    }
    let losing: (() => void) | undefined;
    let stopping: (() => void) | undefined;
    client.on("data", (chunk: Buffer) => {
      this.requests++;
      const text = chunk.toString("latin1");
      if (pipe.name === "") pipe.name = /application_name\0([^\0]*)\0/.exec(text)?.[1] ?? "";
      const { only } = this.#blackhole ?? { only: null };
      if (only === undefined || (only !== null && only === pipe.name)) this.#silence(pipe);
      if (this.#lose?.match.test(text) === true) {
        losing = this.#lose.done;
        this.#lose = undefined;
      }
      if (this.#stop?.at.test(text) === true && --this.#stop.left === 0) {
        const { when, done } = this.#stop;
        this.#stop = undefined;
        if (when === "after") stopping = done;
        else {
          pipe.stopped = true;
          done();
        }
      }
      for (const one of this.#awaited) if (one.match.test(text) && this.#awaited.delete(one)) one.done();
      this.#later(() => pipe.silenced || pipe.stopped || pipe.server.write(chunk));
    });
    pipe.server.on("data", (chunk: Buffer) => {
      if (losing !== undefined) {
        // ReadyForQuery ends the answer: by now it is committed.
        if (!chunk.includes(READY)) return;
        losing();
        this.#end(pipe);
        return;
      }
      if (stopping !== undefined) {
        if (!chunk.includes(READY)) return;
        pipe.stopped = true;
        stopping();
        stopping = undefined;
      }
      this.#later(() => pipe.silenced || pipe.stopped || pipe.client.write(chunk));
    });
  }

  #later(call: () => void): void {
    if (this.#delay === 0) call();
    else setTimeout(call, this.#delay);
  }

  /** The server's side is closed, so that it lets go of locks, as it would when its keepalives fail. */
  #silence(pipe: ProxiedConnection): void {
    pipe.silenced = true;
    pipe.server.destroy();
    pipe.client.once("close", () => this.#pipes.delete(pipe));
  }

  #end(pipe: ProxiedConnection): void {
    this.#pipes.delete(pipe);
    pipe.client.destroy();
    pipe.server.destroy();
  }
}

function endOf({ host, port }: Address): NetConnectOpts {
  return host.startsWith("/") ? { path: `${host}/.s.PGSQL.${port}` } : { host, port };
}

/** ReadyForQuery. */
const READY = Buffer.from([0x5a, 0, 0, 0, 5]);
