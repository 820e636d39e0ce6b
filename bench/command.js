/** Runs a command, or prints its help. With a `problem` of its options, prints the problem and the help, and exits with 2. */
export async function command({ wantsHelp, help, problem, run }) {
  if (wantsHelp) process.stdout.write(help);
  else if (problem === undefined) await run();
  else {
    process.stderr.write(`${problem}\n\n${help}`);
    process.exitCode = 2;
  }
}
