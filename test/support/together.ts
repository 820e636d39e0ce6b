interface Scene {
  readonly run: () => Promise<void>;
  outcome?: Promise<void>;
}

const lanes = 3;

/** Gives an `it` for tests that mostly wait: they run three at a time, after the hooks that stand above the first of them. */
export function together(): (title: string, run: Scene['run']) => void {
  const scenes: Scene[] = [];
  const runAll = async () => {
    const waiting = scenes.values();
    const lane = async () => {
      for (const scene of waiting) {
        scene.outcome = scene.run();
        await scene.outcome.catch(() => undefined); // its test tells
      }
    };
    await Promise.all(Array.from({ length: lanes }, lane));
  };
  return (title, run) => {
    const scene: Scene = { run };
    if (scenes.push(scene) === 1) beforeAll(runAll, 300_000);
    it(title, async () => scene.outcome ?? scene.run()); // alone, as with `-t`, if `runAll` was skipped
  };
}
