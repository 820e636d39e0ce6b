import { constants, fstatSync, openSync, writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { isatty } from 'node:tty';

/** Where log lines go; by default standard output. */
export interface LogDestination {
  /** Writes one line, its line break included; it may wait `withinMs` milliseconds for others. */
  write(line: string, withinMs?: number): void;
  /** Lines dropped so far; absent where none can be dropped. */
  readonly linesDropped?: number;
}

const standardOutput = 1;
/** Most that is buffered while the reader takes nothing, in bytes; lines beyond are dropped. */
const maxLength = 1024 * 1024;
/** The most written at once, in bytes. Each write wakes the reader, which costs as much as a hundred lines. */
const pieceLength = 32_768;
/** Most bytes in UTF-8 of one character (UTF-16 code unit) of a JavaScript string. */
const maxBytesPerCharacter = 3;
const retryMs = 20;
/** How long the end of the process waits for a reader that takes nothing, in milliseconds. */
const exitWaitMs = 1000;
const exitRetryMs = 10;

/**
 * Standard output that never blocks the process. What the reader does not take is buffered up to a limit; lines beyond it
 * are dropped, and once the buffer is written, one line tells how many. The lines of one turn of the event loop are written
 * together when the turn or the process ends; lines that may wait (`withinMs`) are written later.
 */
export class StandardOutput implements LogDestination {
  readonly isTerminal = isatty(standardOutput);
  readonly #output = openWithoutBlocking();
  /** Pieces not written yet, in order. Each holds whole lines; part of the first may be written already. */
  readonly #pieces: Buffer[] = [];
  /** The piece being filled, and how far. Lines are copied at once: waiting strings would be work for the garbage collector. */
  #open = Buffer.allocUnsafe(pieceLength);
  #filled = 0;
  #length = 0;
  #state: 'written' | 'written soon' | 'written when the turn ends' | 'stalled' = 'written';
  #timer: NodeJS.Timeout | undefined;
  /** Lines dropped since the last one that was kept. */
  #dropped = 0;
  /** Lines dropped since the start of the process. */
  linesDropped = 0;

  constructor() {
    process.once('exit', () => this.#writeBeforeExit());
  }

  write(line: string, withinMs = 0): void {
    // Once a line is dropped, all are until the buffer is written, so that the log has one gap and not many.
    if (this.#dropped > 0 || this.#length + line.length > maxLength) {
      this.#dropped += 1;
      this.linesDropped += 1;
      return;
    }
    this.#keep(line);
    if (this.#state === 'stalled') return;
    if (withinMs === 0) this.#writeWhenTurnEnds();
    else if (this.#state === 'written') this.#writeWithin(withinMs);
  }

  #keep(line: string): void {
    const most = maxBytesPerCharacter * line.length;
    if (this.#filled + most > pieceLength) {
      if (this.#state === 'stalled') this.#closePiece();
      else this.#flush();
    }
    // A new buffer, if waiting pieces may lie in the present one, or if it is too short.
    if (this.#filled === 0 && (this.#pieces.length > 0 || most > this.#open.length)) {
      this.#open = Buffer.allocUnsafe(Math.max(most, pieceLength));
    }
    const bytes = this.#open.write(line, this.#filled);
    this.#filled += bytes;
    this.#length += bytes;
  }

  #closePiece(): void {
    if (this.#filled > 0) this.#pieces.push(this.#open.subarray(0, this.#filled));
    this.#filled = 0;
  }

  #writeWhenTurnEnds(): void {
    if (this.#state === 'written when the turn ends') return;
    this.#state = 'written when the turn ends';
    setImmediate(() => this.#state === 'written when the turn ends' && this.#flush());
  }

  #writeWithin(ms: number): void {
    this.#state = 'written soon';
    this.#timer = setTimeout(() => this.#flush(), ms).unref();
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#state = this.#writePieces() === undefined ? 'written' : 'stalled';
    if (this.#state === 'stalled') this.#timer = setTimeout(() => this.#flush(), retryMs).unref();
  }

  /** Returns the error code that stopped it, EAGAIN while the reader takes no more; undefined when all is written. */
  #writePieces(): string | undefined {
    this.#output.unblock?.();
    this.#closePiece();
    try {
      for (;;) {
        if (this.#pieces.length === 0 && this.#dropped > 0) {
          this.#pieces.push(lossLine(this.#dropped));
          this.#dropped = 0;
        }
        const [piece] = this.#pieces;
        if (piece === undefined) return undefined;
        const written = writeSync(this.#output.fd, piece);
        if (written === piece.length) this.#pieces.shift();
        else this.#pieces[0] = piece.subarray(written);
      }
    } catch (error) {
      // A missing reader or a full disk is retried as well: a named pipe or a disk may come back.
      return (error as NodeJS.ErrnoException).code ?? 'unknown';
    } finally {
      this.#length = this.#pieces.reduce((length, piece) => length + piece.length, 0);
    }
  }

  #writeBeforeExit(): void {
    const giveUpAt = performance.now() + exitWaitMs;
    const neverSet = new Int32Array(new SharedArrayBuffer(4));
    while (this.#writePieces() === 'EAGAIN' && performance.now() < giveUpAt) {
      Atomics.wait(neverSet, 0, 0, exitRetryMs);
    }
  }
}

/**
 * Opens standard output with O_NONBLOCK: otherwise a write to a full pipe blocks the process. The flag belongs to the open
 * file description, which other processes such as the shell share, so the pipe is opened again. A thread for writing would
 * not help: Node.js waits for its threads when it ends. Returns where to write, and what to call before each write.
 */
function openWithoutBlocking(): { readonly fd: number; readonly unblock?: () => void } {
  // Writes to a file do not wait for a reader, and a file opened again would be written from its beginning.
  if (fstatSync(standardOutput).isFile()) return { fd: standardOutput };
  try {
    const { O_WRONLY, O_NONBLOCK, O_NOCTTY } = constants;
    return { fd: openSync(`/proc/self/fd/${standardOutput}`, O_WRONLY | O_NONBLOCK | O_NOCTTY) };
  } catch {
    // Sockets, pipes of another user, and everything where there is no /proc cannot be opened again.
  }
  try {
    const socket = new Socket({ fd: standardOutput, readable: false, writable: true });
    const { _handle: handle } = socket as unknown as { _handle?: { setBlocking?(blocking: boolean): void } };
    // Before each write, because another process that shares the output may make it blocking again.
    return { fd: standardOutput, unblock: () => handle?.setBlocking?.(false) };
  } catch {
    return { fd: standardOutput };
  }
}

function lossLine(dropped: number): Buffer {
  const msg = 'log lines were dropped: the reader of standard output did not take them';
  const line = { level: 'warn', time: new Date().toISOString(), pid: process.pid, dropped, msg };
  return Buffer.from(`${JSON.stringify(line)}\n`);
}
