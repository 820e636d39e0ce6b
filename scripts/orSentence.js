/** Runs a command's task; an error ends the process with exit code 1 and its message, without a stack trace. */
export async function orSentence(task) {
  try {
    return await task();
  } catch (error) {
    console.error(error.message);
    process.exit(1);
  }
}
