import jest from '../../jest.config.js';
import { rooms } from './rooms.js';

const room = process.env.MUTATION_ROOM;

export default {
  ...jest,
  globalSetup: undefined, // nothing that is built is mutated
  rootDir: process.cwd(), // where Stryker has copied the project to
  testMatch: rooms[room].map((name) => `<rootDir>/test/${room}/${name}.test.ts`),
  testSequencer: '<rootDir>/test/mutation/inOrder.js',
  testEnvironment: `${process.cwd()}/test/mutation/stopAtFailure.cjs`,
  testTimeout: 12_000, // a mutant that never answers: the longest test takes less than half of it
  reporters: [],
};
