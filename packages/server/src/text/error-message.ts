/** What was thrown, in words: anything can be. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** What an error of the library says, for those that have help of their own. */
export function withoutHelp({ message, help }: { readonly message: string; readonly help: string }): string {
  const tail = `. ${help.charAt(0).toUpperCase()}${help.slice(1)}.`;
  return message.endsWith(tail) ? message.slice(0, -tail.length) : message;
}
