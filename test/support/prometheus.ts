import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { prometheus as program } from "../../scripts/servers.mjs";
import { eventually } from "./eventually.js";

/** Why there is no Prometheus here; undefined: there is. */
export function whyNoPrometheus(): string | undefined {
  return existsSync(program) ? undefined : "Prometheus is not installed (npm test installs it as root on Debian)";
}

export interface ScrapeTarget {
  readonly job: string;
  readonly target: string;
  readonly path: string;
  /** shown with each scrape */
  readonly key?: string;
}

export interface QueryResult {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [at: number, value: string];
}

/** A Prometheus of the test's own, in a folder of its own, that is gone with it. */
export class Prometheus implements AsyncDisposable {
  private constructor(
    readonly url: string,
    readonly folder: string,
    readonly child: ChildProcess,
  ) {}

  static async start(scraped: readonly ScrapeTarget[], rules: string, every: string): Promise<Prometheus> {
    const folder = mkdtempSync(join(tmpdir(), "pawl-prometheus-"));
    const port = await freePort();
    writeFileSync(join(folder, "rules.yml"), rules);
    // JSON is YAML.
    const jobs = scraped.map(({ job, target, path, key }) => ({
      job_name: job,
      metrics_path: path,
      static_configs: [{ targets: [target] }],
      ...(key === undefined ? {} : { authorization: { credentials: key } }),
    }));
    const global = { scrape_interval: every, scrape_timeout: every, evaluation_interval: every };
    writeFileSync(join(folder, "prometheus.yml"), JSON.stringify({ global, rule_files: ["rules.yml"], scrape_configs: jobs }));
    const args = [`--config.file=${folder}/prometheus.yml`, `--storage.tsdb.path=${folder}/data`, `--web.listen-address=127.0.0.1:${port}`];
    const child = spawn(program, [...args, "--log.level=warn"], { stdio: ["ignore", "ignore", "pipe"] });
    let said = "";
    child.stderr.on("data", (text) => (said += text));
    const server = new Prometheus(`http://127.0.0.1:${port}`, folder, child);
    await eventually(
      () => `Prometheus is ready: ${said}`,
      () => {
        if (child.exitCode !== null) throw new Error(`Prometheus ended: ${said}`);
        return fetch(`${server.url}/-/ready`).then(
          ({ ok }) => ok,
          () => false,
        );
      },
    );
    return server;
  }

  async query(expr: string): Promise<readonly QueryResult[]> {
    const answer = await fetch(`${this.url}/api/v1/query`, { method: "POST", body: new URLSearchParams({ query: expr }) });
    const { status, error, data } = (await answer.json()) as { status: string; error?: string; data: { result: readonly QueryResult[] } };
    if (status !== "success") throw new Error(`${expr}: ${error}`);
    return data.result;
  }

  async rules(): Promise<readonly { readonly name: string; readonly health: string; readonly lastError?: string }[]> {
    const { data } = (await (await fetch(`${this.url}/api/v1/rules`)).json()) as { data: { groups: { rules: [] }[] } };
    return data.groups.flatMap(({ rules }) => rules);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const gone = once(this.child, "exit");
    this.child.kill("SIGKILL");
    await gone;
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** What Prometheus's own checker says of rules or of exposed text; empty if all is well. */
export function promtool(args: readonly string[], input: string): Promise<string> {
  return new Promise((resolve) => {
    const child = execFile(join(program, "../promtool"), [...args], (error, stdout, stderr) => resolve(error === null ? "" : `${stdout}${stderr}`));
    child.stdin?.end(input);
  });
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}
