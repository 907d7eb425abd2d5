import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { alerts } from "../../packages/server/src/telemetry/metrics/alerts.js";
import { eventually } from "../support/eventually.js";
import { temporaryFolder } from "../support/temporary-folder.js";
import { ServiceProcess, serve } from "./service.js";

const OBJECTIVE = "pawl_job_objective_seconds";
const TOOK = "pawl_job_end_to_end_seconds";
const TASKS = `
  const task = (name) => ({ name, options: {}, schema: undefined, handler: () => "done" });
  export const greet = task("greet");
  export const part = task("part");
`;

test("objectives that are set for a service are in what it is scraped for, where the alert on them looks", { timeout: 180_000 }, async () => {
  using folder = temporaryFolder();
  const tasks = join(folder.path, "tasks.mjs");
  mkdirSync(folder.path, { recursive: true });
  writeFileSync(tasks, TASKS);
  await using service = serve("memory:", ["--tasks", tasks, "--metrics-objectives", "greet=1500ms,*=5m"]);
  const address = await service.up();
  for (const name of ["greet", "part"]) await ServiceProcess.enqueue(address, name, {});

  let text = "";
  const values = (metric: string) =>
    Object.fromEntries([...text.matchAll(new RegExp(`^${metric}\\{task="(\\w+)"\\} (\\S+)$`, "gm"))].map((m) => [m[1], Number(m[2])]));
  await eventually(
    () => `both tasks, timed from due to finished, in\n${text}`,
    async () => {
      text = await (await fetch(`${address}/metrics`)).text();
      return values(`${TOOK}_count`).greet === 1 && values(`${TOOK}_count`).part === 1;
    },
  );
  expect(values(OBJECTIVE)).toMatchObject({ greet: 1.5, part: 300 });

  // The alert compares the two by task: neither may be called otherwise than it is exposed.
  const alert = alerts().find(({ name }) => name === "PawlEndToEndSlow");
  expect(alert?.expr).toMatch(new RegExp(`rate\\(${TOOK}_bucket\\[.*> on \\(job, task\\) .*\\(${OBJECTIVE}\\[`));
  expect(Object.keys(values(OBJECTIVE))).toEqual(Object.keys(values(`${TOOK}_count`)));
});
