/**
 * The alternative names of a certificate, from the one text that Node makes of them: `DNS:a, URI:b`. A name that holds what
 * would divide it is quoted there, and stays one name here: it must not be read as two.
 */
export function certificateNames(text: string): readonly string[] {
  return [...text.matchAll(/(?:^|, )([A-Za-z ]+:(?:"(?:[^"\\]|\\.)*"|[^",]*))(?=, |$)/g)].map(([, name]) => name as string);
}
