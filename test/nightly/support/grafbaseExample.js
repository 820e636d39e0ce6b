import { fileURLToPath } from 'node:url';

/** The router's program, for Linux on x64. */
export const grafbase = here('../node_modules/@grafbase/cli-x86_64-unknown-linux-musl/grafbase');

export const grafbaseConfig = here('../../../examples/supergraph/grafbase/grafbase.toml');

/** The variables of the configuration. */
export function grafbaseVariables({ taxpayersUrl, casesUrl }) {
  const { FEDERATION_SHARED_SECRET = '' } = process.env;
  return { TAXPAYERS_URL: taxpayersUrl, CASES_URL: casesUrl, FEDERATION_SHARED_SECRET };
}

function here(path) {
  return fileURLToPath(new URL(path, import.meta.url));
}
