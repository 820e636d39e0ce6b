/** Runs `work(n)` for n from 0 to `count` - 1, at most `atOnce` at a time. @returns the results in order */
export async function inParallel(count, atOnce, work) {
  const results = [];
  let next = 0;
  const lane = async () => {
    while (next < count) {
      const n = next++;
      results[n] = await work(n);
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, count) }, lane));
  return results;
}
