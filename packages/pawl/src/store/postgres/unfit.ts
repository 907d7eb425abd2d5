/** In the message of a failure that settles nothing, for people who read the server's log. */
export const UNFIT = "pawl settles these one by one";

/** One of them does not fit, or the row of one is there already. */
export function isUnfit(error: unknown): boolean {
  const { code, message } = (error as { cause?: { code?: string; message?: string } }).cause ?? {};
  return code === "23505" || (code === "22P02" && message !== undefined && message.includes(UNFIT));
}
