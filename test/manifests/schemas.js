// Judges of files that cannot be run here. Each returns what is wrong with a text, as a list.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import * as CDX from '@cyclonedx/cyclonedx-library';
import Ajv from 'ajv';
import { build } from 'esbuild';
import gitlabSchema from 'gitlab-ci-local/src/schema/index.js';
import { parse } from 'yaml';

const githubParser = await loadGithubParser();

/** GitHub's own parser of workflows, with its schema. */
export function githubProblems(text) {
  const { parseWorkflow, NoOperationTraceWriter } = githubParser;
  const { context } = parseWorkflow({ name: 'workflow.yml', content: text }, new NoOperationTraceWriter());
  return context.errors.getErrors().map(({ message }) => message);
}

/** GitLab's JSON schema of pipelines. */
export function gitlabProblems(text) {
  const ajv = new Ajv({ allErrors: true, strict: false, validateFormats: false });
  const validate = ajv.compile(gitlabSchema);
  return validate(parse(text)) ? [] : validate.errors.map(({ instancePath, message }) => `${instancePath} ${message}`);
}

/** The JSON schema of CycloneDX, by the library of its authors. */
export async function cyclonedxProblems(text) {
  const validator = new CDX.Validation.JsonStrictValidator(CDX.Spec.Version.v1dot5);
  const error = await validator.validate(text);
  return error === null ? [] : [JSON.stringify(error)];
}

/** Bundled, because it imports JSON in a way that Node.js does not know. */
async function loadGithubParser() {
  const folder = mkdtempSync(join(tmpdir(), 'workflow-parser-'));
  try {
    const outfile = join(folder, 'parser.mjs');
    const stdin = { contents: "export * from '@actions/workflow-parser'", resolveDir: import.meta.dirname };
    await build({ stdin, bundle: true, platform: 'browser', format: 'esm', outfile });
    return await import(pathToFileURL(outfile).href);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
