import { type FloatValueNode, GraphQLScalarType, type IntValueNode, visit } from 'graphql';
import { GraphQLJSONObject } from 'graphql-scalars';
import { isLostInteger } from '../json.js';

const { parseLiteral, ...config } = GraphQLJSONObject.toConfig();

/** The scalar of graphql-scalars, whose literals are read as `parseJson` reads JSON: an integer that a double cannot hold is an infinity. */
export const JSONObject = new GraphQLScalarType({
  ...config,
  parseLiteral: (node, variables) =>
    parseLiteral(visit(node, { IntValue: withInfinity, FloatValue: withInfinity }), variables),
});

function withInfinity<Node extends IntValueNode | FloatValueNode>(node: Node): Node | undefined {
  return isLostInteger(node.value) ? { ...node, value: '1e999' } : undefined;
}
