import { BoundedCache } from '../process/BoundedCache.js';

/** This many different requests in a row that get a 403 mean that the 403 is not about the requests. */
const requestsInARow = 3;
/** How long a 403 counts, and how long a holder's calls are then refused, in milliseconds. */
const forbiddenMs = 30_000;
/** Over all endpoints, client secrets and holders together. */
const maxRuns = 500;

/**
 * Tells whether a 403 is about the request (a firewall in front of the service) or about our client credentials. It is about
 * the credentials when different requests get a 403 in a row, with no other answer in between. Requests of one holder count
 * for that holder alone, so that no holder can stop the others; requests of three holders count for all.
 */
export class ForbiddenRequests {
  readonly #runs = new BoundedCache<Run>({ max: maxRuns, memoMethod: () => new Run() });

  /** Whether the holder's calls are refused. `place` is the endpoint with the credentials the call would be made with. */
  refuses(place: string, holder: string | undefined): boolean {
    return (
      this.#runs.size > 0 &&
      holder !== undefined &&
      performance.now() < (this.#runs.get(nameOf(place, holder))?.refusedUntil ?? 0)
    );
  }

  /** Notes a 403 and judges it by those before. `request` tells different requests apart. */
  note(place: string, holder: string | undefined, request: string) {
    const now = performance.now();
    // Without an identity, each request may come from another caller.
    const byEverybody = this.#runs.memo(nameOf(place)).add(holder ?? `request ${request}`, request, now);
    if (byEverybody >= requestsInARow) return 'about-the-credentials';
    if (holder === undefined) return 'about-the-request';
    const own = this.#runs.memo(nameOf(place, holder));
    if (own.add(request, request, now) < requestsInARow) return 'about-the-request';
    own.refusedUntil = now + forbiddenMs;
    return 'about-the-holder';
  }

  /** Notes any other answer: the service accepts the credentials. */
  clear(place: string, holder: string | undefined): void {
    if (this.#runs.size === 0) return;
    for (const whose of [holder, undefined]) this.#runs.delete(nameOf(place, whose));
  }
}

/** Requests that got a 403 in a row; only the last one of each source counts. */
class Run {
  refusedUntil = 0;
  #met: readonly { readonly source: string; readonly request: string; readonly at: number }[] = [];

  /** Returns how many different requests of different sources there are now. */
  add(source: string, request: string, now: number): number {
    const others = this.#met.filter((met) => met.source !== source && met.request !== request);
    const recent = others.filter(({ at }) => now - at < forbiddenMs).slice(1 - requestsInARow);
    this.#met = [...recent, { source, request, at: now }];
    return this.#met.length;
  }
}

/** The name of a holder's run; without a holder, of the run of all holders. */
function nameOf(place: string, holder?: string): string {
  return JSON.stringify([place, holder]);
}
