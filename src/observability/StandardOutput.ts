import { writeSync } from 'node:fs';
import { codeOf } from '../process/systemErrors.js';

/** Where log lines go; by default standard output. */
export interface LogDestination {
  /** Writes one line, its line break included. */
  write(line: string): void;
  /** Lines dropped so far; absent where none can be dropped. */
  readonly linesDropped?: number;
}

/** Most bytes that are kept while the reader takes nothing; lines beyond are dropped. */
const maxBytes = 1024 * 1024;
const retryMs = 20;
/** How long the end of the process waits for a reader that takes nothing, in milliseconds. */
const exitWaitMs = 1000;

/**
 * What Node.js writes to when standard output is a pipe, a socket or a terminal. It is made non-blocking before each write,
 * because another process that shares a pipe may have made it blocking again. (That process then finds it non-blocking, as with
 * any program on Node.js.) A file has no such handle, and no reader to wait for.
 */
interface Handle {
  readonly fd: number;
  setBlocking(blocking: boolean): void;
}

/**
 * Standard output that never blocks the process. The lines of one turn of the event loop are written together when the turn
 * or the process ends. What the reader does not take is kept up to a limit; lines beyond it are dropped and counted. (sonic-boom
 * writes in Node's thread pool, cannot wait for that when the process ends, and there tries for ever to write to a full disk or a
 * closed pipe.)
 */
export class StandardOutput implements LogDestination {
  readonly isTerminal = process.stdout.isTTY === true;
  readonly #handle = (process.stdout as unknown as { readonly _handle?: Handle })._handle;
  /** The lines that are not written yet. The first may be the rest of a line. */
  #pending: Buffer[] = [];
  #pendingBytes = 0;
  #willWrite = false;
  /** Lines dropped since the start of the process. */
  linesDropped = 0;

  constructor() {
    process.once('exit', () => this.#writeBeforeExit());
  }

  write(line: string): void {
    const bytes = Buffer.from(line);
    if (this.#pendingBytes + bytes.length > maxBytes) {
      this.linesDropped += 1;
      return;
    }
    this.#pending.push(bytes);
    this.#pendingBytes += bytes.length;
    if (!this.#willWrite) setImmediate(() => this.#write());
    this.#willWrite = true;
  }

  #write(): void {
    this.#willWrite = this.#writeAll() !== undefined;
    if (this.#willWrite) setTimeout(() => this.#write(), retryMs).unref();
  }

  /** Returns the error code that stopped it, EAGAIN while the reader takes no more; undefined when all is written. */
  #writeAll(): string | undefined {
    this.#handle?.setBlocking(false);
    try {
      while (this.#pendingBytes > 0) {
        const piece = Buffer.concat(this.#pending);
        this.#pending = [piece];
        const written = writeSync(this.#handle?.fd ?? 1, piece);
        this.#pending = [piece.subarray(written)];
        this.#pendingBytes -= written;
      }
      return undefined;
    } catch (error) {
      // A missing reader or a full disk is retried as well: a named pipe or a disk may come back.
      return codeOf(error) ?? 'unknown';
    }
  }

  #writeBeforeExit(): void {
    const giveUpAt = performance.now() + exitWaitMs;
    const neverSet = new Int32Array(new SharedArrayBuffer(4));
    while (this.#writeAll() === 'EAGAIN' && performance.now() < giveUpAt) Atomics.wait(neverSet, 0, 0, retryMs);
  }
}
