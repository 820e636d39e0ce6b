import { isImprecise, isNestedWithin, maxMetadataDepth } from '../process/json.js';

const maxMetadataValues = 10_000;

/** A place in metadata, such as `.crm.ids.0`, and a message about that place. */
interface MetadataFault {
  readonly place: string;
  readonly message: string;
}

/** Why metadata is not passed on, as a caller sends it or as the service returns it. Undefined when it can be. */
export function faultOfMetadata(metadata: unknown): MetadataFault | undefined {
  if (!isNestedWithin(metadata, maxMetadataDepth)) {
    return { place: '', message: `must be nested at most ${maxMetadataDepth} levels` };
  }
  let count = 0;
  /** Looks at a value, and at those in it, until there is a fault. */
  const faultIn = (value: unknown, place: string): MetadataFault | undefined => {
    count += 1;
    if (count > maxMetadataValues) return { place: '', message: `must have at most ${maxMetadataValues} values` };
    if (isImprecise(value))
      return { place, message: 'must be a string: a JSON number of 2^53 or more may lose digits' };
    if (typeof value !== 'object' || value === null) return undefined;
    for (const [key, member] of Object.entries(value)) {
      const fault = faultIn(member, `${place}.${key}`);
      if (fault) return fault;
    }
    return undefined;
  };
  return faultIn(metadata, '');
}
