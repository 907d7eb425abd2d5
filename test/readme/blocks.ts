/** A fenced block of a Markdown text. */
export interface Block {
  readonly language: string;
  readonly text: string;
  /** of its first line, from 1 */
  readonly line: number;
}

export function blocksOf(markdown: string): readonly Block[] {
  return [...markdown.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map((match) => ({
    language: match[1] as string,
    text: match[2] as string,
    line: markdown.slice(0, match.index).split("\n").length + 1,
  }));
}
