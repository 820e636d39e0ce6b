/**
 * Whether a value is a number that may have lost digits when it was parsed: one from 2^53 on, where doubles leave out integers, or an
 * infinity.
 */
export function isImprecise(value: unknown): boolean {
  return typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER;
}

/** Whether a JSON value nests at most `levels` levels. Unlike an unbounded walk, it cannot overflow the stack. */
export function isNestedWithin(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  const members: readonly unknown[] = Array.isArray(value) ? value : Object.values(value);
  return members.length === 0 || (levels > 0 && members.every((member) => isNestedWithin(member, levels - 1)));
}

/** Whether a value is a JSON object. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The deepest nesting of metadata, in levels. It also bounds whole requests, in which metadata is not yet told apart. */
export const maxMetadataDepth = 20;
