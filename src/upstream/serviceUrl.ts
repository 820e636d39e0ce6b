/**
 * The one place that builds a URL of the service (interface, part 4). Each segment becomes exactly one path segment: `URL`
 * collapses `.` and `..`, which `encodeURIComponent` leaves alone, so they are refused (TypeError) here as well as where
 * ids enter.
 */
export function serviceUrl(baseUrl: string, ...segments: readonly string[]): string {
  const path = segments.map((segment) => {
    if (segment === '' || segment === '.' || segment === '..' || !segment.isWellFormed()) {
      throw new TypeError('Expected a path segment, found an empty, dot or malformed one');
    }
    return encodeURIComponent(segment);
  });
  return `${baseUrl.replace(/\/+$/, '')}/${path.join('/')}`;
}
