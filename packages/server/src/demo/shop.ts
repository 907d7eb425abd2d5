import type { Pawl } from "pawl";
import { charge, encode, newsletter, notify, page, remind, report, welcome } from "./tasks.js";

/** A backlog beyond which the shop stops taking orders: a demo left alone must not fill the disk. */
const ENOUGH_JOBS = 200;
const PACE_MS = 900;

type Step = (pawl: Pawl, number: number) => Promise<unknown>;

/** What customers do, one thing after the other. The first few show every kind of job within seconds. */
const STEPS: readonly Step[] = [
  (pawl, n) => Promise.all([pawl.enqueue(welcome, { to: `customer-${n}@example.com` }), pawl.enqueue(charge, { order: n, timeouts: 0 })]),
  (pawl, n) => pawl.enqueue(encode, { video: n, seconds: 4 + (n % 3) }),
  (pawl, n) => pawl.enqueue(remind, { cart: n }, { delay: 8_000 + (n % 7) * 6_000, unique: `cart-${n}` }),
  (pawl, n) => pawl.enqueue(charge, { order: n, timeouts: 1 + (n % 2) }),
  async (pawl, n) => {
    const pages = await pawl.enqueueMany(
      page,
      [1, 2, 3].map((number) => ({ report: n, page: number })),
    );
    await pawl.enqueue(report, { report: n }, { dependsOn: pages });
  },
  (pawl, n) => pawl.enqueue(notify, { url: "https://partner.example/hook", status: n % 3 === 2 ? 503 : 200 }),
  (pawl, n) => pawl.enqueue(welcome, { to: `customer-${n}@example.com` }),
  (pawl, n) => pawl.enqueue(encode, { video: n, seconds: 3 }),
  (pawl, n) =>
    pawl.enqueueMany(
      newsletter,
      Array.from({ length: 20 }, (_, reader) => ({ issue: n, reader })),
    ),
  (pawl, n) => pawl.enqueue(notify, { url: "https://old-partner.example/hook", status: 410 }, { tags: [`order-${n}`] }),
];

/** Enqueues a step every so often, until the answer is called; that waits for the step under way. */
export function openShop(pawl: Pawl, onError: (error: unknown) => void): () => Promise<void> {
  let number = 0;
  let underWay: Promise<unknown> = Promise.resolve();
  const step = async () => {
    const { ready, scheduled } = await pawl.counts();
    if (ready + scheduled < ENOUGH_JOBS) await (STEPS[number % STEPS.length] as Step)(pawl, number++);
  };
  const next = () => {
    underWay = underWay.then(step).catch(onError);
  };
  for (const _ of STEPS.slice(0, 6)) next();
  const timer = setInterval(next, PACE_MS);
  return async () => {
    clearInterval(timer);
    await underWay;
  };
}
