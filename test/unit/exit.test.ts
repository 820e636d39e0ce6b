import { jest } from '@jest/globals';
import { GraphQLError } from 'graphql';
import { boundsFor, Places, rateLimited } from '../../src/admission/Places.js';
import { GatewayError } from '../../src/errors/errors.js';
import { Exit } from '../../src/operations/Exit.js';
import type { Answer, Operation, OperationsOptions, Result } from '../../src/operations/Operation.js';

const exit = new Exit({
  places: new Places(boundsFor({ MAX_CONNECTIONS: 10, answerBytes: 1e6 })),
  config: { answerBytes: 1e6, INTROSPECTION: true },
  ...{ onEnd: () => undefined, log: { error: () => undefined } },
} as unknown as OperationsOptions);
const at = (path: string, originalError: Error) => new GraphQLError('', { path: [path], originalError });
const refused = at('b', rateLimited('At most 32 calls'));

function leave(type: string, rootFields: number, result: Result): Answer {
  const operation = { type, asked: {}, known: { rootFields }, facts: { requestId: 'x' }, context: { holder: 'ada' } };
  return exit.leave({ ...operation, codes: new Map(), causes: [], transport: 'http' } as unknown as Operation, result);
}

it('A bug before anything is executed has the status 500', () => {
  const errors = [new TypeError('planted')];
  expect(leave('query', 1, { errors })).toMatchObject({ kind: 'refusal', status: 500 });
});

it('A refusal of the only field refuses the request', () => {
  for (const type of ['query', 'mutation']) {
    expect(() => leave(type, 1, { data: null, errors: [refused] })).toThrow('At most 32 calls');
  }
  expect(() => leave('query', 2, { data: { a: null, b: null }, errors: [refused, refused] })).toThrow(/^At most/);
});

it('A mutation of which something may have been carried out is no refusal, and no error hides another', () => {
  expect(leave('mutation', 2, { data: null, errors: [refused] }).errors).toMatchObject([{ path: ['b'] }]);
  const notFound = at('a', new GatewayError('NOT_FOUND', 'There is no such taxpayer'));
  expect(leave('query', 2, { data: { a: null, b: null }, errors: [notFound, refused] }).errors).toMatchObject([
    { path: ['a'], extensions: { code: 'NOT_FOUND' } },
    { path: ['b'], extensions: { code: 'RATE_LIMITED' } },
  ]);
});

it('An answer that is too large by its escapes alone is not made', () => {
  const stringify = jest.spyOn(JSON, 'stringify');
  const [text = ''] = leave('query', 1, { data: { a: '\u0001'.repeat(200_000), b: '' } }).text.split('"path"');
  expect(text).toContain('at most 1000000 bytes');
  expect(stringify.mock.calls.some(([value]) => Object(value).data?.a !== undefined)).toBe(false);
});
