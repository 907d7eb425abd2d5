import type { NewJob } from "../../../core/jobs/job.js";

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

/** Characters of an input, and of what is carried of a job on average, up to which a row of many is of a modest size. */
const MAX_AVERAGE_CHARS = 64;
const MAX_OPTIONS_CHARS = 4 * MAX_AVERAGE_CHARS;

/** Whether ready rows carry inputs and options of these jobs, so that who claims them need not look them up; not if one of them has too much. */
export function fitsReadyRow(jobs: readonly NewJob[]): boolean {
  let size = 0;
  let plain = true;
  for (const job of jobs) {
    const options = optionsText(job)?.length ?? 0;
    if (job.input.length > MAX_AVERAGE_CHARS || options > MAX_OPTIONS_CHARS) return false;
    size += job.input.length + options;
    plain &&= options === 0;
  }
  return plain || size <= MAX_AVERAGE_CHARS * jobs.length;
}
