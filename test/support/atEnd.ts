type End = () => unknown;

const ofTest: End[] = [];
const ofFile: End[] = [];
let current = ofFile;

/** Calls `end` after the test that is running; before and between tests, as in `beforeAll`, after all of the file. The last comes first. */
export function atEnd(end: End): void {
  current.push(end);
}

/** A signal that aborts then. */
export function untilEnd(): AbortSignal {
  const ending = new AbortController();
  atEnd(() => ending.abort());
  return ending.signal;
}

async function callAll(ends: End[]) {
  for (const end of ends.splice(0).reverse()) await end();
}

if ('afterAll' in globalThis) {
  beforeEach(() => {
    current = ofTest;
  });
  afterEach(() => {
    current = ofFile;
    return callAll(ofTest);
  });
  afterAll(() => callAll(ofFile));
} else {
  // A benchmark has no hooks. A process that ends waits for nothing: what takes time is only begun.
  process.once('exit', () => {
    for (const end of ofFile.reverse()) end();
  });
}
