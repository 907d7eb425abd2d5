import { builtPawl, NodeProcess } from "../support/processes/child-process.js";

/** A process of the service, and where it answers. */
export class ServiceProcess extends NodeProcess {
  constructor(command: "serve" | "dev", args: readonly string[], env: NodeJS.ProcessEnv = {}) {
    super(builtPawl(), [command, ...args], { PAWL_LOG_FORMAT: "lines", ...env });
  }

  async address(): Promise<string> {
    return (await this.line(/^listening +/)).replace(/^listening +/, "");
  }

  /** The same once it has its store and serves. */
  async up(): Promise<string> {
    await this.line(/^components +/);
    return this.address();
  }

  /** Enqueues over HTTP; answers with the job's id once the service has acknowledged it. */
  static async enqueue(address: string, task: string, input: unknown, headers: Readonly<Record<string, string>> = {}): Promise<string> {
    const response = await fetch(`${address}/v1/jobs`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ task, input }),
    });
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
    return ((await response.json()) as { id: string }).id;
  }
}

/** A service process on a port of its own, on this store. */
export function serve(store: string, args: readonly string[] = [], env: NodeJS.ProcessEnv = {}): ServiceProcess {
  // A URL with a password is for the environment.
  return new ServiceProcess("serve", ["--listen", "127.0.0.1:0", ...args], { PAWL_STORE: store, ...env });
}
