import { queues, tasks, tenants } from "../contract/operate/queues-tasks-tenants.js";
import { on } from "../handler.js";

/** Queues, tasks and tenants alike: each is written out, so that its types are its own. */
export const queuesTasksTenants = [
  on(queues.list, ({ pawl }) => pawl.queues.list()),
  on(queues.get, ({ pawl, params }) => pawl.queues.get(params.queue)),
  on(queues.update, ({ pawl, params, body }) => pawl.queues.update(params.queue, body)),
  on(queues.pause, async ({ pawl, params, body }) => {
    await pawl.queues.pause(params.queue, body.reason);
  }),
  on(queues.resume, async ({ pawl, params, body }) => {
    await pawl.queues.resume(params.queue, body.reason);
  }),
  on(tasks.list, ({ pawl }) => pawl.tasks.list()),
  on(tasks.get, ({ pawl, params }) => pawl.tasks.get(params.task)),
  on(tasks.update, ({ pawl, params, body }) => pawl.tasks.update(params.task, body)),
  on(tasks.pause, async ({ pawl, params, body }) => {
    await pawl.tasks.pause(params.task, body.reason);
  }),
  on(tasks.resume, async ({ pawl, params, body }) => {
    await pawl.tasks.resume(params.task, body.reason);
  }),
  on(tasks.put, async ({ pawl, params, body }) => {
    await pawl.tasks.put(params.task, body);
  }),
  on(tenants.list, ({ pawl }) => pawl.tenants.list()),
  on(tenants.get, ({ pawl, params }) => pawl.tenants.get(params.tenant)),
  on(tenants.update, ({ pawl, params, body }) => pawl.tenants.update(params.tenant, body)),
  on(tenants.pause, async ({ pawl, params, body }) => {
    await pawl.tenants.pause(params.tenant, body.reason);
  }),
  on(tenants.resume, async ({ pawl, params, body }) => {
    await pawl.tenants.resume(params.tenant, body.reason);
  }),
];
