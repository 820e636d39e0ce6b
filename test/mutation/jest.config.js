import jest from '../../jest.config.js';
import { rooms } from './rooms.js';

const room = process.env.MUTATION_ROOM;

export default {
  ...jest,
  rootDir: process.cwd(), // where Stryker has copied the project to
  testMatch: rooms[room].map((name) => `<rootDir>/test/${room}/${name}.test.ts`),
  testSequencer: '<rootDir>/test/mutation/inOrder.js',
  reporters: [],
};
