import { join } from 'node:path';
import { run } from '../../support/run.js';
import { scratch } from '../../support/scratch.js';

const env = { ...process.env, NODE_OPTIONS: '', npm_config_update_notifier: 'false', npm_config_loglevel: 'error' };

/** Packs the package in `folder` as it is published; gives the path of the file. */
export async function pack(folder: string): Promise<string> {
  const directory = scratch();
  const { stdout } = await run('npm', ['pack', folder, '--ignore-scripts', '--pack-destination', directory], { env });
  return join(directory, stdout.trim());
}

/** Rejects with what publint finds wrong. */
export async function expectPublishable(tarball: string): Promise<void> {
  await run(process.execPath, ['test/nightly/node_modules/publint/src/cli.js', tarball, '--strict'], { env });
}
