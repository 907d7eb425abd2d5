/** Whose jobs are those that Pawl itself makes, purges among them: nobody purges it, so that no purge comes upon itself. */
export const OWN_TENANT = "pawl";

/** Names beginning so are Pawl's own tasks: they act for who enqueued them, so only the operation itself may do that, or run them. */
export function isOwnTask(name: string): boolean {
  return name.startsWith("pawl.");
}
