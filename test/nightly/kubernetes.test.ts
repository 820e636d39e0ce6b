import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from '@jest/globals';
import { parseAllDocuments } from 'yaml';
import { needPrograms } from '../support/programs.js';
import { run } from './support/run.js';

const here = fileURLToPath(new URL('.', import.meta.url));
/** Of the root: what the packages of this folder bring is older. */
const compiler = join(here, '../../node_modules/typescript/bin/tsc');
const compilerOptions = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'NodeNext', '--ignoreConfig'];

/** What kubectl makes of an overlay, as TypeScript of the types of Kubernetes: a field that is misspelt does not compile. */
function typed(environment: string): string {
  needPrograms(['kubectl']);
  const folder = join(here, '../../ops/kubernetes/overlays', environment);
  const documents = parseAllDocuments(execFileSync('kubectl', ['kustomize', folder], { encoding: 'utf8' }));
  return documents
    .map((document) => document.toJS() as { apiVersion: string; kind: string })
    .map((object, index) => {
      const type = `import('kubernetes-models/${object.apiVersion}').I${object.kind}`;
      return `export const m${index}: ${type} = ${JSON.stringify(object, null, 1)};\n`;
    })
    .join('');
}

async function compiled(text: string) {
  const file = join(here, `manifests-${process.pid}.ts`);
  writeFileSync(file, text);
  try {
    return await run(process.execPath, [compiler, ...compilerOptions, file]);
  } finally {
    rmSync(file);
  }
}

it.each(['development', 'production'])(
  'the overlay %s is rendered by kubectl, of fields that Kubernetes has',
  async (environment) => {
    const text = typed(environment);
    expect(text.match(/IDeployment = /g)).toHaveLength(environment === 'development' ? 3 : 1);
    expect(await compiled(text)).toEqual({ code: 0, output: '' });
  },
);

it('a field that Kubernetes does not have is noticed', async () => {
  const { output } = await compiled(typed('production').replace('"enableServiceLinks"', '"enableServiceLink"'));
  expect(output).toContain('enableServiceLink');
});
