/** Planted values by name: `{ 'access token': 'CanaryToken…' }`. They are letters and digits, which most encodings keep. */
type Canaries = Readonly<Record<string, string>>;

/** The canaries found in `bytes`, each with its encoding: `access token in base64`. */
export function findCanaries(bytes: Buffer | string, canaries: Canaries): string[] {
  const buffer = typeof bytes === 'string' ? Buffer.from(bytes) : bytes;
  return Object.entries(canaries).flatMap(([what, value]) =>
    Object.entries(spellingsOf(value)).flatMap(([how, needles]) =>
      needles.some((needle) => buffer.includes(needle)) ? [`${what} ${how}`] : [],
    ),
  );
}

/** The encodings in which a value might leak. */
export function spellingsOf(value: string): Readonly<Record<string, readonly (string | Buffer)[]>> {
  const hex = Buffer.from(value).toString('hex');
  const base64 = [0, 1, 2].map((offset) => base64Within(value, offset));
  const characters = [...value];
  const codes = characters.map((character) => character.charCodeAt(0).toString(16).padStart(2, '0'));
  return {
    'as it is': [value],
    'in small letters': [value.toLowerCase()],
    reversed: [characters.toReversed().join('')],
    'in hex': [hex, hex.toUpperCase()],
    'in base64': base64,
    'in base64url': base64.map((text) => text.replaceAll('+', '-').replaceAll('/', '_')),
    'percent-encoded': [encodeURIComponent(value), codes.map((code) => `%${code}`).join('')],
    'JSON-escaped': [codes.map((code) => `\\u00${code}`).join('')],
    'in UTF-16': [Buffer.from(value, 'utf16le')],
  };
}

/** The base64 characters that depend only on `value`, when it starts in a text at a byte that is `offset` modulo three. */
function base64Within(value: string, offset: number) {
  const whole = Buffer.concat([Buffer.alloc(offset), Buffer.from(value)]);
  const firstCertain = [0, 2, 3][offset];
  return whole.toString('base64').slice(firstCertain, Math.floor((whole.length * 8) / 6));
}
