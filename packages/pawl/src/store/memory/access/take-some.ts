/** Takes away up to so many of the rows that are meant. Answers how many. */
export function takeSome<K extends string, V>(rows: Map<K, V>, limit: number, isMeant: (key: string, row: V) => boolean): number {
  const meant = [...rows].filter(([key, row]) => isMeant(key, row)).slice(0, limit);
  for (const [key] of meant) rows.delete(key);
  return meant.length;
}
