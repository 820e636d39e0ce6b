/** One try of a call to the service or to the decision point. */
export interface CallMade {
  readonly endpoint: string;
  readonly method: 'GET' | 'POST';
  /** A URL of the server, without an id. */
  readonly server: string;
  /** `ok`, or what went wrong, of a small set. */
  readonly outcome: string;
  /** Of `performance.now()`. */
  readonly startedAt: number;
  readonly ms: number;
  /** The HTTP status of the answer, if one came. */
  readonly status?: number | undefined;
  /** Why it failed, as in the error; of a small set. */
  readonly reason?: string | undefined;
}

/** Most calls that one record lists. */
const maxCalls = 10;

/** The calls made on behalf of one operation. */
export class Trail {
  /** The first calls; undefined while there is none. */
  calls: CallMade[] | undefined;
  /** Calls to the token endpoint that the operation took from the budget, whether they have ended or not. */
  tokenCalls = 0;

  note(call: CallMade): void {
    this.calls ??= [];
    if (this.calls.length < maxCalls) this.calls.push(call);
  }
}
