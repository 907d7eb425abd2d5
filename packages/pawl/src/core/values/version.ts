/** The version of this library, as its package says it. */
export const VERSION = "0.1.0";
