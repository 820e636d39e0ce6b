import { causesOf } from '../errors/causesOf.js';
import { type Answer, codesOf } from './Exit.js';
import type { EndedOperation } from './observeOperations.js';

/** Summarises the answers of a stream, for the log line at its end. */
export class StreamSummary {
  #events = 0;
  readonly #codes = new Set<string>();
  readonly #causes = new Set<string>();

  /** Counts an answer and returns it. `errors`: the answer's errors before they were masked. */
  note(answer: Answer, errors: readonly unknown[] | undefined): Answer {
    this.#events += 1;
    if (errors === undefined || answer.errors.length === 0) return answer;
    for (const code of codesOf(answer)) this.#codes.add(code);
    for (const cause of causesOf(errors)) if (this.#causes.size < 3) this.#causes.add(cause);
    return answer;
  }

  get codes(): readonly string[] {
    return [...this.#codes];
  }

  get end(): Pick<EndedOperation, 'outcome' | 'codes' | 'causes' | 'events'> {
    const { codes } = this;
    return { outcome: codes.length > 0 ? 'errors' : 'ok', codes, causes: [...this.#causes], events: this.#events };
  }
}
