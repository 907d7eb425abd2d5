/**
 * `npm test`: installs the servers that are missing, where it can, runs vitest with the arguments given, and closes
 * with one plain line of counts, which CI reads. With `--no-skips`, as CI runs it, a test that was skipped is a failure
 * where everything can be installed: on Debian as root. Without a name or project to run it leaves out the project
 * `rest`, which `npm run test:rest` is for (vitest.config.ts says what that holds).
 */
import { parseCLI, startVitest } from "vitest/node";
import { canInstall, installServers } from "./servers.mjs";

await installServers();

const NO_SKIPS = "--no-skips";
const given = process.argv.slice(2);
const { filter, options } = parseCLI(["vitest", "run", ...given.filter((word) => word !== NO_SKIPS)]);
const project = options.project ?? (filter.length === 0 ? ["!rest"] : undefined);
const vitest = await startVitest("test", filter, { ...options, ...(project && { project }), watch: false });

const counts = { passed: 0, failed: 0, skipped: 0 };
const skipped = [];
for (const file of vitest.state.getTestModules()) {
  const before = counts.failed;
  for (const test of file.children.allTests()) {
    const { state } = test.result();
    if (state in counts) counts[state]++;
    if (state === "skipped") skipped.push(`${file.relativeModuleId} > ${test.fullName}`);
  }
  // A file that could not be loaded, or whose hook failed, has failed though none of its tests did.
  if (file.state() === "failed" && counts.failed === before) counts.failed++;
}
counts.failed += vitest.state.getUnhandledErrors().length;

if (skipped.length > 0 && given.includes(NO_SKIPS)) {
  if (canInstall()) counts.failed += 1;
  const verdict = canInstall() ? "here nothing may be" : "not a failure here: only Debian as root has all that they need";
  console.log(`Skipped (${verdict}):\n${skipped.map((name) => `  ${name}`).join("\n")}`);
}

await vitest.close();
if (counts.failed > 0) process.exitCode ||= 1;
else if (process.exitCode) counts.failed = 1; // nothing ran, or the run itself broke
console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
process.exit();
