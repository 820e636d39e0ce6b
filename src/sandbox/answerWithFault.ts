import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { gzipSync } from 'node:zlib';
import { type Answer, afterDelay, sendAnswer } from './Answer.js';
import type { Fault, FaultBook } from './Fault.js';
import { type FaultyRequest, wrongAnswer } from './wrongAnswer.js';

/** Answers the request the wrong way that the fault describes: the one place where faults happen. */
export function answerWithFault(
  fault: Fault,
  request: FaultyRequest,
  response: ServerResponse,
  faults: FaultBook,
): void {
  switch (fault.kind) {
    case 'never-answer':
      if (fault.afterEffect) request.carryOut();
      break;
    case 'reset-before-effect':
      resetConnection(response);
      break;
    case 'reset-after-effect':
      request.carryOut();
      resetConnection(response);
      break;
    case 'answer-late':
      sendLate(response, request.carryOut(), fault.afterMs);
      break;
    case 'hold-until-released':
      sendWhenReleased(response, request.carryOut(), fault.gate, faults);
      break;
    case 'close-after-answer':
      response.once('finish', () => response.socket?.end());
      sendAnswer(response, request.carryOut());
      break;
    case 'truncate-body':
      sendTruncated(response, request.carryOut());
      break;
    case 'drip-body':
      sendDripping(response, request.carryOut(), fault.everyMs, fault.bytes ?? 1);
      break;
    case 'answer-with-huge-body':
      sendHuge(response, request.carryOut(), fault.bytes, fault.chunked ?? false);
      break;
    case 'answer-with-gzip-bomb':
      sendGzipBomb(response, request.carryOut(), fault.bytes);
      break;
    default:
      sendAnswer(response, wrongAnswer(fault, request));
  }
}

function resetConnection(response: ServerResponse): void {
  response.socket?.resetAndDestroy();
}

function sendLate(response: ServerResponse, answer: Answer, afterMs: number): void {
  afterDelay(afterMs, response, () => sendAnswer(response, answer));
}

function sendWhenReleased(response: ServerResponse, answer: Answer, gate: string, faults: FaultBook): void {
  const forget = faults.hold(gate, () => sendAnswer(response, answer));
  response.once('close', forget);
}

function sendTruncated(response: ServerResponse, answer: Answer): void {
  response.writeHead(answer.status, answer.headers);
  response.write(answer.body.subarray(0, Math.floor(answer.body.length / 2)), () => response.socket?.end());
}

function sendDripping(response: ServerResponse, answer: Answer, everyMs: number, bytes: number): void {
  response.writeHead(answer.status, answer.headers).flushHeaders();
  let sent = 0;
  const timer = setInterval(() => {
    response.write(answer.body.subarray(sent, sent + bytes));
    sent += bytes;
    if (sent < answer.body.length) return;
    clearInterval(timer);
    response.end();
  }, everyMs);
  response.once('close', () => clearInterval(timer));
}

/** JSON may start with white space, so the answer stays valid whatever its size. */
function sendHuge(response: ServerResponse, answer: Answer, bytes: number, chunked: boolean): void {
  const padding = Math.max(0, bytes - answer.body.length);
  const length = chunked ? {} : { 'content-length': padding + answer.body.length };
  response.writeHead(answer.status, { 'content-type': 'application/json', ...length });
  const spaces = Buffer.alloc(Math.min(65_536, padding), ' ');
  sendChunks(response, function* () {
    for (let left = padding; left > 0; left -= spaces.length) yield spaces.subarray(0, left);
    yield answer.body;
  });
}

/** Gzip members may follow one another, so one compressed mebibyte, sent many times, expands without end. */
function sendGzipBomb(response: ServerResponse, answer: Answer, bytes: number): void {
  const mebibyte = 1_048_576;
  const member = gzipSync(Buffer.alloc(mebibyte, ' '));
  response.writeHead(answer.status, { 'content-type': 'application/json', 'content-encoding': 'gzip' });
  sendChunks(response, function* () {
    for (let expanded = 0; expanded < bytes; expanded += mebibyte) yield member;
    yield gzipSync(answer.body);
  });
}

function sendChunks(response: ServerResponse, chunks: () => Generator<Buffer>): void {
  // A client that leaves half-way is what these faults are for.
  pipeline(Readable.from(chunks()), response).catch(() => response.destroy());
}
