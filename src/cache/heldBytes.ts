/** What V8 takes for an object or array besides its members: at most, for an empty one with room to grow. */
const containerBytes = 64;
const scalarBytes = 16; // a number, boolean or null, and its JSON
const slotBytes = 8; // a slot that holds a member

/**
 * About how many bytes of memory a JSON value takes, once as objects and once as text. (Empty objects take twenty times as
 * much as their JSON.) Recurses, so only for values of bounded nesting.
 */
export function heldBytes(value: unknown): number {
  if (typeof value === 'string') return textBytes(value);
  if (typeof value !== 'object' || value === null) return scalarBytes;
  let bytes = containerBytes;
  for (const member of Object.values(value)) bytes += slotBytes + heldBytes(member);
  if (!Array.isArray(value)) for (const key of Object.keys(value)) bytes += slotBytes + textBytes(key);
  return bytes;
}

/** One byte for a character, or two when the text has one beyond ASCII. (V8 does that beyond Latin-1.) */
function textBytes(text: string): number {
  const json = JSON.stringify(text);
  const characters = text.length + json.length;
  return 8 + (Buffer.byteLength(json) === json.length ? characters : 2 * characters);
}
