import type { NewJob } from "../../core/job.js";

export function optionsText(job: NewJob): string | undefined {
  return job.options === undefined ? undefined : encodeOptions(job.options);
}

/** Options objects are shared by the jobs of a call: encode each once. */
const encoded = new WeakMap<object, string>();
function encodeOptions(options: object): string {
  let text = encoded.get(options);
  if (text === undefined) {
    text = JSON.stringify(options);
    encoded.set(options, text);
  }
  return text;
}
