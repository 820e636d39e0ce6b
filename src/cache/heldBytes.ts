/** Most bytes that V8 takes for an object or array besides its members: those of an empty one with room to grow. */
const containerBytes = 64;
const scalarBytes = 16; // a number or, rounded up, a boolean or null
const slotBytes = 8; // a slot that holds a member
const textHeaderBytes = 16;

/**
 * About how many bytes of memory a JSON value takes. (An empty object takes twenty times as much as its JSON.) Recursive, so
 * only for values of bounded depth.
 */
export function heldBytes(value: unknown): number {
  if (typeof value === 'string') return textBytes(value);
  if (typeof value !== 'object' || value === null) return scalarBytes;
  let bytes = containerBytes;
  for (const member of Object.values(value)) bytes += slotBytes + heldBytes(member);
  if (!Array.isArray(value)) for (const key of Object.keys(value)) bytes += slotBytes + textBytes(key);
  return bytes;
}

/** One byte per character, or two when any character is beyond ASCII. (V8 takes two only beyond Latin-1.) */
function textBytes(text: string): number {
  return textHeaderBytes + (Buffer.byteLength(text) === text.length ? text.length : 2 * text.length);
}
