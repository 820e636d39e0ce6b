/** How many operations of a log were executed in this `way`; a line may stand for several. */
export function executions(log: string, way: string): number {
  const lines = log.split('\n').filter((line) => line.includes(`"way":"${way}"`));
  return lines.reduce((sum, line) => sum + ((JSON.parse(line) as { readonly count?: number }).count ?? 1), 0);
}
