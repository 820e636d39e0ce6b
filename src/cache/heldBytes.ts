/** What V8 takes for an object or array besides its members: the most, when it is empty, for which it keeps room to grow. */
const containerBytes = 64;
/** A number, boolean or null, and its JSON. */
const scalarBytes = 16;
/** A slot that holds a member. */
const slotBytes = 8;

/**
 * About how many bytes of memory a JSON value takes, once as objects and once more as the text that is kept of it. Its JSON
 * alone would not tell: empty objects take twenty times as much as their text. For values of bounded nesting only: it
 * recurses.
 */
export function heldBytes(value: unknown): number {
  if (typeof value === 'string') return textBytes(value);
  if (typeof value !== 'object' || value === null) return scalarBytes;
  let bytes = containerBytes;
  for (const member of Object.values(value)) bytes += slotBytes + heldBytes(member);
  if (!Array.isArray(value)) for (const key of Object.keys(value)) bytes += slotBytes + textBytes(key);
  return bytes;
}

/** One byte for a character, or two when the text has one beyond Latin-1; for simplicity when it has one beyond ASCII. */
function textBytes(text: string): number {
  const json = JSON.stringify(text);
  const characters = text.length + json.length;
  const isAscii = Buffer.byteLength(json) === json.length;
  return 8 + (isAscii ? characters : 2 * characters);
}
