import type { IncomingMessage, ServerResponse } from 'node:http';
import { errorAnswer, sendAnswer } from './Answer.js';

const maxBodyBytes = 4_194_304;

/**
 * Calls `next` with the text of the body: at once when the request has none, which keeps the path of the reading
 * endpoints free of waiting. Answers 413 by itself when the body is longer than 4 MiB.
 */
export function readBody(request: IncomingMessage, response: ServerResponse, next: (body: string) => void): void {
  const { 'content-length': length, 'transfer-encoding': encoding } = request.headers;
  if (encoding === undefined && (length === undefined || length === '0')) {
    next('');
    return;
  }
  const chunks: Buffer[] = [];
  let bytes = 0;
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes <= maxBodyBytes) chunks.push(chunk);
  });
  request.on('end', () => {
    if (bytes > maxBodyBytes) sendAnswer(response, errorAnswer(413, 'The body is too large'));
    else next(Buffer.concat(chunks).toString());
  });
}
