/** What the benchmark's command needs of the reporting. */

export { pageParts } from "./markdown.js";
export { COLOURED } from "./paint.js";
export { printedPairs, savePairs } from "./paired.js";
export { printed } from "./table.js";
export { chartedIn, publish, reportsIn, saveReport } from "./write.js";
