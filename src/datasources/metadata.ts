import { isImprecise, isNestedWithin, maxMetadataDepth } from '../process/json.js';

const maxMetadataValues = 10_000;

/**
 * Why metadata is not passed on, as a caller sends it or as the service returns it: a place in it, such as `.crm.ids.0`, and a
 * message about that place. Undefined when it can be.
 */
export function faultOfMetadata(metadata: unknown): { readonly place: string; readonly message: string } | undefined {
  if (!isNestedWithin(metadata, maxMetadataDepth)) {
    return { place: '', message: `must be nested at most ${maxMetadataDepth} levels` };
  }
  if (valuesIn(metadata, maxMetadataValues) > maxMetadataValues) {
    return { place: '', message: `must have at most ${maxMetadataValues} values` };
  }
  const path = pathOfImprecise(metadata);
  if (path === undefined) return undefined;
  return { place: `.${path}`, message: 'must be a string: a JSON number of 2^53 or more may lose digits' };
}

/** The path of the first number that is not precise, as `crm.ids.0`; undefined when there is none. For bounded nesting only. */
function pathOfImprecise(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [key, member] of Object.entries(value)) {
    if (isImprecise(member)) return key;
    const below = pathOfImprecise(member);
    if (below !== undefined) return `${key}.${below}`;
  }
  return undefined;
}

/** How many values a JSON value holds, itself included; stops counting above `most`. */
function valuesIn(value: unknown, most: number): number {
  let count = 1;
  if (typeof value !== 'object' || value === null) return count;
  for (const member of Object.values(value)) {
    if (count > most) break;
    count += valuesIn(member, most - count);
  }
  return count;
}
