/**
 * `npm test`: installs the servers that are missing, where it can, runs vitest with the arguments given, and closes
 * with one plain line of counts, which CI reads.
 */
import { parseCLI, startVitest } from "vitest/node";
import { installServers } from "./servers.mjs";

await installServers();

const { filter, options } = parseCLI(["vitest", "run", ...process.argv.slice(2)]);
const vitest = await startVitest("test", filter, { ...options, watch: false });

const counts = { passed: 0, failed: 0, skipped: 0 };
for (const file of vitest.state.getTestModules()) {
  const before = counts.failed;
  for (const test of file.children.allTests()) {
    const { state } = test.result();
    if (state in counts) counts[state]++;
  }
  // A file that could not be loaded, or whose hook failed, has failed though none of its tests did.
  if (file.state() === "failed" && counts.failed === before) counts.failed++;
}
counts.failed += vitest.state.getUnhandledErrors().length;

await vitest.close();
if (counts.failed > 0) process.exitCode ||= 1;
else if (process.exitCode) counts.failed = 1; // nothing ran, or the run itself broke
console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
process.exit();
