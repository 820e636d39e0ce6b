import { orExplain } from '../../scripts/build.js';

/** Does what a command was called for. A `problem` of its options ends it with 2, after the problem and the help. */
export async function command({ wantsHelp, help, problem, run }) {
  if (wantsHelp) process.stdout.write(help);
  else if (problem === undefined) await orExplain(run);
  else {
    process.stderr.write(`${problem}\n\n${help}`);
    process.exitCode = 2;
  }
}
