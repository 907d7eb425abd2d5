/** What the benchmark's command needs of the reporting. */

export { pageParts } from "./markdown.js";
export { COLOURED } from "./paint.js";
export { keepPairs, printedPairs } from "./paired.js";
export { printed } from "./table.js";
export { chartedIn, keep, publish, reportsIn } from "./write.js";
