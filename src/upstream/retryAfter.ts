/** Waits above this are not believed: a broken header must not silence the gateway for a year. */
const longestBelievableSeconds = 3600;
/** A date means "now" when it has just passed on its way to us, in seconds. One of long ago is of a wrong clock. */
const justPassedSeconds = 1;

/**
 * Reads a `Retry-After` header in either form (RFC 9110, section 10.2.3: seconds or an HTTP date).
 * Returns whole seconds from `now` (epoch milliseconds), or undefined when it is absent, malformed or absurd.
 */
export function retryAfterSeconds(header: string | null, now: number): number | undefined {
  if (header === null) return undefined;
  const text = header.trim();
  const seconds = /^\d+$/.test(text) ? Number(text) : Math.ceil((httpDate(text) - now) / 1000);
  if (!(seconds >= -justPassedSeconds && seconds <= longestBelievableSeconds)) return undefined;
  return Math.max(0, seconds);
}

/** Only the date forms of RFC 9110, section 5.6.7: `Date.parse` alone would take "-5" or "2040" for a date. */
function httpDate(text: string): number {
  return /^[A-Z][a-z]+,? /.test(text) ? Date.parse(text) : Number.NaN;
}
