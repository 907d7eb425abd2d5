/** Text that others wrote, in one line and without what a terminal would obey. */
export function clean(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are the ones meant
  return text.replace(/[\u0000-\u001f\u007f-\u009f]+/g, " ");
}
