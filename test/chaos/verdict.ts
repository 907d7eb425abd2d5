import { OUTCOMES } from "../../packages/pawl/src/core/jobs/outcome.js";
import { eventually } from "../support/eventually.js";
import type { ProcessFixture } from "../support/fixtures/process-fixture.js";
import type { Fleet } from "./fleet.js";
import { checkTicks } from "./schedules.js";

/** Everything is healed and drained: what must be true now. Answers what to print; throws if something is not. */
export async function verdict(fixture: ProcessFixture, fleet: Fleet): Promise<readonly string[]> {
  await fixture.check();
  const asked = new Set(fixture.acknowledged);
  const stored = await fixture.one<number>("select count(*)::int from pawl.any_job");
  // Every order was repeated until it was acknowledged, so each is there once: no more, no less. So is every tick's job.
  if (stored !== asked.size) throw new Error(`I12 ${asked.size} orders, ${stored} jobs`);
  const ticks = await checkTicks(fixture);
  const deaths = await fixture.rows<{ task: string; kind: string; n: number }>(
    "select task, kind, count(*)::int as n from pawl.dead group by 1, 2 order by 1, 2",
  );
  const wrong = deaths.filter(({ task, kind }) => !(task === "poison" && kind === "poison") && !(task === "fragile" && kind === "interrupted"));
  if (wrong.length > 0) throw new Error(`dead and should not be: ${JSON.stringify(wrong)}`);
  if (fleet.surprises.length > 0) throw new Error(`processes that ended by themselves: ${fleet.surprises.join("\n")}`);
  const processes = fleet.alive.length + 1;
  await eventually("I15 one listener per process", async () => (await fixture.connections()).get("pawl listen") === processes, 30_000);
  const connections = [...(await fixture.connections()).values()].reduce((a, b) => a + b, 0);
  if (connections > processes * 12) throw new Error(`I15 ${connections} connections of ${processes} processes`);
  const attempts = await fixture.rows<{ outcome: number; n: number }>(
    "select outcome, count(*)::int as n from pawl.any_attempt group by 1 order by 1",
  );
  return [
    `jobs: ${stored}; dead: ${deaths.map(({ task, kind, n }) => `${n} ${task} (${kind})`).join(", ") || "none"}`,
    `attempts: ${attempts.map(({ outcome, n }) => `${n} ${OUTCOMES[outcome] ?? outcome}`).join(", ")}`,
    `ticks with a job: ${ticks}`,
    "all invariants hold",
  ];
}
