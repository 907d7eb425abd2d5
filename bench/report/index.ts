/** What the benchmark's command needs of the reporting. */
export { COLOURED } from "./paint.js";
export { printed } from "./table.js";
export { keep, publish } from "./write.js";
