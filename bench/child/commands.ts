import { setTimeout as pause } from "node:timers/promises";
import type { Child, Jobs, Usage } from "../contract/child.ts";
import type { PlannedJob, Session } from "../contract/system.ts";
import { monotonic } from "./clock.ts";
import { inParallel, planned } from "./jobs.ts";
import { RunCounter } from "./run-counter.ts";
import { dueOf, plannedSchedules } from "./schedules.ts";
import { Times } from "./spread.ts";

/** What can be asked of a child by a message that is answered. */
export type Commands = Omit<Child, "system" | "pid" | "done" | "onProgress">;

export interface Obeying {
  readonly commands: Commands;
  /** how far the current command, or the worker, has come */
  progress(): number;
  done(count: number): void;
}

/** Carries out commands on a session, and takes the times. */
export function obeying(session: Session): Obeying {
  let counter = new RunCounter(0);
  let stored = 0;
  let doneElsewhere = 0;
  let heard = () => {};

  const timed = async (count: number, work: () => Promise<unknown>) => {
    const began = monotonic();
    await work();
    return { count, ms: monotonic() - began };
  };
  function* counted(jobs: Iterable<PlannedJob>) {
    for (const job of jobs) {
      stored++;
      yield job;
    }
  }

  const commands: Commands = {
    prepare: () => session.prepare(),

    enqueueMany: (jobs) => timed(jobs.count, () => session.enqueueMany(counted(planned(jobs)))),

    async enqueueEach(jobs) {
      const times = new Times();
      const took = await timed(jobs.count, () =>
        inParallel(counted(planned(jobs)), jobs.inFlight, async (job) => {
          const began = monotonic();
          await session.enqueue(job);
          times.add(monotonic() - began);
        }),
      );
      return { ...took, latency: times.spread() };
    },

    enqueuePaced: (jobs) =>
      timed(jobs.count, async () => {
        const began = monotonic();
        const sent: Promise<void>[] = [];
        for (const { input, ...job } of planned(jobs)) {
          await pause(Math.max(0, began + (sent.length / jobs.perSecond) * 1_000 - monotonic()));
          // Not awaited: a slow answer must not hold back the next one, or the slow ones would hide themselves.
          sent.push(session.enqueue({ ...job, input: { ...input, at: monotonic() } }));
          stored++;
        }
        await Promise.all(sent);
      }),

    async enqueueFor({ ms, chunk, backlog }) {
      const began = monotonic();
      let count = 0;
      while (monotonic() - began < ms) {
        if (count - doneElsewhere < backlog) {
          await session.enqueueMany(counted(planned({ from: count, count: chunk })));
          count += chunk;
        } else {
          await Promise.race([new Promise<void>((resolve) => (heard = resolve)), pause(100)]);
        }
      }
      return { count, ms: monotonic() - began };
    },

    async enqueueStream(jobs) {
      if (session.enqueueStream === undefined) throw new Error("this system has no stream");
      const tenths: { ms: number; rssBytes: number }[] = [];
      const began = monotonic();
      await session.enqueueStream(endless(jobs), (soFar) => {
        stored = soFar;
        while (tenths.length < 10 && soFar >= (jobs.count * (tenths.length + 1)) / 10) {
          tenths.push({ ms: monotonic() - began, rssBytes: process.memoryUsage.rss() });
        }
      });
      return { count: jobs.count, ms: monotonic() - began, tenths };
    },

    async putSchedules(command) {
      if (session.putSchedules === undefined) throw new Error("this system has no schedules");
      const schedules = plannedSchedules(command);
      await session.putSchedules(schedules);
      return { due: dueOf(schedules) };
    },

    async work({ upTo, ...settings }) {
      counter = new RunCounter(upTo);
      const began = monotonic();
      // Through the variable, so that `forget` reaches a running worker.
      await session.work((input) => counter.tick(input), settings);
      return { began };
    },

    async ran(count) {
      await counter.reached(count);
      return counter.ran();
    },

    report: async () => counter.ran(),

    async watched() {
      if (session.watched === undefined) throw new Error("this system says nothing of its work");
      return session.watched();
    },

    async pause() {
      if (session.pause === undefined) throw new Error("this system cannot be paused");
      await session.pause();
    },

    async resume() {
      await session.resume?.();
    },

    async forget(upTo) {
      counter = new RunCounter(upTo);
    },

    usage: async () => usage(),

    stop: () => session.stop(),
  };

  return {
    commands,
    progress: () => counter.count || stored,
    done(count) {
      doneElsewhere = count;
      heard();
    },
  };
}

async function* endless(jobs: Jobs): AsyncGenerator<PlannedJob> {
  yield* planned(jobs);
}

function usage(): Usage {
  const { user, system } = process.cpuUsage();
  return { cpuMs: (user + system) / 1_000, rssBytes: process.memoryUsage.rss(), peakRssBytes: process.resourceUsage().maxRSS * 1_024 };
}
