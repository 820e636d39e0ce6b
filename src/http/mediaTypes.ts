import { parse } from 'content-type';

/** One entry of an Accept header; names of types and parameters are in lower case. */
export interface MediaRange {
  readonly type: string;
  readonly parameters: Readonly<Record<string, string | undefined>>;
}

/** What an Accept header says. */
export interface Accepted {
  /** In the order given. */
  readonly ranges: readonly MediaRange[];
  /** The types that `q=0` excludes. */
  readonly excluded: readonly string[];
}

/** In characters. More than any client sends; what comes after them is not looked at. */
const maxLength = 2000;

const anything: Accepted = { ranges: [{ type: '*/*', parameters: {} }], excluded: [] };
const jsonOnly: Accepted = { ranges: [{ type: 'application/json', parameters: {} }], excluded: [] };

/** Reads an Accept header, in linear time: it comes from anybody, before they say who they are. */
export function readAccept(accept: string | undefined): Accepted {
  if (accept === undefined || accept === '*/*') return anything;
  if (accept === 'application/json') return jsonOnly; // the usual ones need no parsing
  const ranges: MediaRange[] = [];
  const excluded: string[] = [];
  const text = accept.slice(0, maxLength);
  for (let start = 0; start < text.length; ) {
    const { type, parameters, index } = parse(text, { comma: true, start });
    if (/^0(\.0*)?$/.test(parameters['q'] ?? '')) excluded.push(type);
    else ranges.push({ type, parameters });
    start = index + 1;
  }
  return { ranges, excluded };
}

/** Whether a header names this very type, not a wildcard that includes it. */
export function accepts({ ranges }: Accepted, type: string): boolean {
  return ranges.some((range) => range.type === type);
}

/** Whether a Content-Type is JSON; its charset does not matter. */
export function isJson(contentType: string | undefined): boolean {
  return contentType !== undefined && parse(contentType, { parameters: false }).type === 'application/json';
}

/** Whether a Content-Type leaves the body in UTF-8, which is also what JSON is in when it says nothing. */
export function isUtf8(contentType: string): boolean {
  const charset = parse(contentType).parameters['charset'];
  return charset === undefined || /^utf-?8$/i.test(charset);
}
