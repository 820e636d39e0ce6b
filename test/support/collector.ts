import { createServer, type IncomingHttpHeaders } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { serve } from './serve.js';

export interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly name: string;
  readonly kind: number;
  /** Nanoseconds of the epoch. */
  readonly start: bigint;
  readonly end: bigint;
  readonly attributes: Readonly<Record<string, unknown>>;
  /** 2: an error. */
  readonly status: number;
}

/** A collector of traces over OTLP/HTTP in Protobuf, on loopback. */
export async function startCollector(status = 200) {
  const spans: CollectedSpan[] = [];
  const requests: { readonly url: string; readonly headers: IncomingHttpHeaders; readonly body: string }[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { headers, url = '' } = request;
    const sent = Buffer.concat(chunks);
    const body = headers['content-encoding'] === 'gzip' ? gunzipSync(sent) : sent;
    requests.push({ url, headers, body: body.toString() });
    spans.push(...spansIn(body));
    response.writeHead(status, { 'content-type': 'application/x-protobuf' }).end();
  });
  return { url: await serve(server), spans, requests };
}

/** The values of each field of a Protobuf message, by its number: numbers as they are, everything else as bytes. */
type Fields = Map<number, (bigint | Buffer)[]>;

/** The bytes of a value by its wire type; those of other types begin with their length. */
const fixedLengths: Readonly<Record<number, number>> = { 1: 8, 5: 4 };

function fieldsOf(message: Buffer): Fields {
  const fields: Fields = new Map();
  let at = 0;
  const varint = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message[at++] as number;
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  const take = (length: number) => {
    at += length;
    return message.subarray(at - length, at);
  };
  while (at < message.length) {
    const key = Number(varint());
    const type = key & 7;
    const value = type === 0 ? varint() : take(fixedLengths[type] ?? Number(varint()));
    fields.set(key >> 3, [...(fields.get(key >> 3) ?? []), value]);
  }
  return fields;
}

const messagesIn = (message: Buffer, field: number) => (fieldsOf(message).get(field) ?? []) as Buffer[];
const textOf = (fields: Fields, field: number, encoding: BufferEncoding = 'utf8') =>
  (fields.get(field)?.[0] as Buffer | undefined)?.toString(encoding) ?? '';

function spansIn(request: Buffer): CollectedSpan[] {
  const scopes = messagesIn(request, 1).flatMap((resource) => messagesIn(resource, 2));
  return scopes
    .flatMap((scope) => messagesIn(scope, 2))
    .map((message) => {
      const span = fieldsOf(message);
      const time = (field: number) => ((span.get(field) ?? [Buffer.alloc(8)])[0] as Buffer).readBigUInt64LE();
      const [status] = (span.get(15) ?? []) as Buffer[];
      return {
        traceId: textOf(span, 1, 'hex'),
        spanId: textOf(span, 2, 'hex'),
        parentSpanId: textOf(span, 4, 'hex') || undefined,
        name: textOf(span, 5),
        kind: Number(span.get(6)?.[0]),
        start: time(7),
        end: time(8),
        attributes: Object.fromEntries(((span.get(9) ?? []) as Buffer[]).map(attributeOf)),
        status: Number(status === undefined ? 0 : (fieldsOf(status).get(3)?.[0] ?? 0)),
      };
    });
}

function attributeOf(message: Buffer): [string, unknown] {
  const pair = fieldsOf(message);
  return [textOf(pair, 1), anyValue(pair.get(2)?.[0] as Buffer)];
}

/** The value of an attribute: the only field that its message has tells the type. */
function anyValue(message: Buffer): unknown {
  const [[field, [value]]] = [...fieldsOf(message)] as [[number, [bigint | Buffer]]];
  if (field === 5) return messagesIn(value as Buffer, 1).map(anyValue);
  if (field === 4) return (value as Buffer).readDoubleLE();
  return typeof value === 'bigint' ? Number(value) : (value as Buffer).toString();
}
