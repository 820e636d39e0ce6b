/** What `make` gives for each number from 0 on, `count` times. */
export const times = <Made>(count: number, make: (n: number) => Made): Made[] =>
  Array.from({ length: count }, (_, n) => make(n));
