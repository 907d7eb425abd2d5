import type { Context, Middleware } from "../../core/jobs/context.js";
import type { AnyTask } from "../../core/jobs/task.js";

/** Calls a handler through the middleware. */
export type Invoke = (task: AnyTask, input: unknown, ctx: Context) => unknown;

/** Composed once per worker. Without middleware the handler is called as it is: nothing is wrapped on the hot path. */
export function compose(middleware: readonly Middleware[]): Invoke {
  if (middleware.length === 0) return (task, input, ctx) => task.handler(input, ctx);
  return (task, input, ctx) => {
    const call = (index: number): unknown => {
      const layer = middleware[index];
      if (layer === undefined) return task.handler(input, ctx);
      let called = false;
      return layer(ctx, () => {
        if (called) return Promise.reject(new Error("a middleware called next() twice in one attempt"));
        called = true;
        try {
          return promised(call(index + 1));
        } catch (error) {
          return Promise.reject(error);
        }
      });
    };
    return call(0);
  };
}

/** A promise that is there already is handed on as it is: a layer that only passes by costs no turns of the event loop. */
export function promised(value: unknown): Promise<unknown> {
  return value instanceof Promise ? value : Promise.resolve(value);
}
