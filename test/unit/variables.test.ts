import { buildSchema, Kind, type OperationDefinitionNode, parse } from 'graphql';
import { variableReader } from '../../src/operations/variables.js';

it('Variables are copied once, however many defaults there are', () => {
  const schema = buildSchema('type Query { a(b: [Int]): Int }');
  const [operation] = parse('query ($a: Int = 1, $b: Int = 2, $c: [Int]) { a }').definitions;
  expect(operation?.kind).toBe(Kind.OPERATION_DEFINITION);
  const read = variableReader(schema, (operation as OperationDefinitionNode).variableDefinitions, true);
  let copies = 0;
  const ownKeys = (given: Record<string, unknown>) => {
    copies += 1;
    return Reflect.ownKeys(given);
  };
  expect(read(new Proxy({ c: 3, other: 4 }, { ownKeys }))).toEqual({ a: 1, b: 2, c: [3], other: 4 });
  expect(copies).toBe(1);
});
