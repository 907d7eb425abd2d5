import { describe, expect, test } from "vitest";
import { generator } from "../../testing/clock.js";
import { digitsOf, idSuffixSource, type JobId, jobId } from "./id.js";
import type { JobOptions, NewJob } from "./job.js";
import { movedBy, shareOf, spreadOut } from "./spread.js";

const random = generator(7);
const idSuffixes = idSuffixSource((size) => Uint8Array.from({ length: size }, () => random() * 256));
const newJob = (more: Partial<NewJob> = {}, options: JobOptions = { spread: 60_000 }): NewJob => ({
  idSuffix: idSuffixes("acme"),
  lane: { queue: "default", priority: 5, tenant: "acme", task: "work" },
  input: "null",
  options,
  ...more,
});

describe("a spread", () => {
  test("moves a job by a share of the window that is its own and always the same", () => {
    const job = newJob();
    const share = shareOf(60_000, digitsOf(job.idSuffix));
    expect(spreadOut(job).delay).toBe(share);
    expect(spreadOut(job)).toEqual(spreadOut(job));
    expect(share).toBeLessThan(60_000);
  });

  test("counts from the delay or the instant that was asked for", () => {
    const job = newJob({ delay: 5_000 });
    const share = shareOf(60_000, digitsOf(job.idSuffix));
    expect(spreadOut(job)).toEqual({ ...job, delay: 5_000 + share });
    const timed = newJob({ idSuffix: job.idSuffix, runAt: 1_000_000 });
    expect(spreadOut(timed)).toEqual({ ...timed, runAt: 1_000_000 + share });
  });

  test("of a window from min to max moves every job by at least min and less than max", () => {
    const options: JobOptions = { spread: [60_000, 90_000] };
    const delays = Array.from({ length: 1_000 }, () => spreadOut(newJob({}, options)).delay ?? 0);
    expect(Math.min(...delays)).toBeGreaterThanOrEqual(60_000);
    expect(Math.max(...delays)).toBeLessThan(90_000);
    expect(delays.filter((delay) => delay < 75_000).length, "about a half are in the first half").toBeGreaterThan(400);
    expect(delays.filter((delay) => delay >= 75_000).length, "and in the second").toBeGreaterThan(400);
    const job = newJob({ runAt: 1_900_000_000_000 }, options);
    const { runAt = 0 } = spreadOut(job);
    expect(runAt - movedBy(jobId(runAt, job.idSuffix), options), "its id tells by how much").toBe(1_900_000_000_000);
  });

  test("leaves a job alone that asks for none", () => {
    const job = newJob({}, {});
    expect(spreadOut(job)).toBe(job);
    const { options: _, ...bare } = newJob();
    expect(spreadOut({ ...bare, options: undefined })).toEqual({ ...bare, options: undefined });
  });

  test("can be told from the id of a stored job", () => {
    for (let n = 0; n < 100; n++) {
      const job = newJob({ runAt: 1_900_000_000_000 });
      const { runAt = 0 } = spreadOut(job);
      expect(runAt - movedBy(jobId(runAt, job.idSuffix), { spread: 60_000 })).toBe(1_900_000_000_000);
    }
  });

  test("of a job that was stored long ago stays what it was", () => {
    expect(movedBy("018b0f2c-3d40-7abc-8def-0123456789ab" as JobId, { spread: 60_000 })).toBe(3_670);
  });

  test("is even: of 100,000 jobs due at one instant, each second of a minute gets its sixtieth", () => {
    const perSecond = new Array<number>(60).fill(0);
    for (let n = 0; n < 100_000; n++) (perSecond[Math.floor((spreadOut(newJob()).delay ?? 0) / 1_000)] as number)++;
    const mean = 100_000 / 60;
    // Five standard deviations of a fair draw: about one run in 30,000 would fall outside, and this one is seeded.
    for (const count of perSecond) expect(Math.abs(count - mean)).toBeLessThan(5 * Math.sqrt(mean));
  });
});
