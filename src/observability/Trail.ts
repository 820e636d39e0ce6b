/** A call to the service as a log line tells it. */
export interface NotedCall {
  readonly endpoint: string;
  readonly ms: number;
  readonly result: string;
}

/** Most calls that one line lists; further ones are only counted. */
const maxCalls = 10;

/** What one operation did: which tier answered its reads, and the calls made on its behalf. */
export class Trail {
  memory = 0;
  store = 0;
  service = 0;
  /** Reads that joined one already under way in this process. */
  shared = 0;
  /** The first calls; undefined while there is none. */
  calls: NotedCall[] | undefined;
  /** All calls, those included that {@link Trail.calls} has no room for. */
  callCount = 0;
  /** Calls to the token endpoint that it took from the budget, whether they are over or not. */
  tokenCalls = 0;

  /** Counts a read, by what answered it. */
  read(from: 'store' | 'waited' | 'fetched' | 'memory' | 'shared'): void {
    if (from === 'fetched') this.service += 1;
    else if (from === 'memory' || from === 'shared') this[from] += 1;
    else this.store += 1; // who waited for another process found its value in the store
  }

  call(endpoint: string, result: string, seconds: number): void {
    this.callCount += 1;
    this.calls ??= [];
    if (this.calls.length < maxCalls) this.calls.push({ endpoint, ms: Math.round(seconds * 1000), result });
  }
}
