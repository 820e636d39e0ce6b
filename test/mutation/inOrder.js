import Sequencer from '@jest/test-sequencer';
import { rooms } from './rooms.js';

const names = rooms[process.env.MUTATION_ROOM];
const placeOf = ({ path }) => names.findIndex((name) => path.endsWith(`/${name}.test.ts`));

/** The order of rooms.js. */
export default class InOrder extends Sequencer {
  sort(tests) {
    return [...tests].sort((one, other) => placeOf(one) - placeOf(other));
  }
}
