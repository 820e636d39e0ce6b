import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '../../support/freePort.js';
import { startProgram } from '../../support/program.js';
import { scratch } from '../../support/scratch.js';

interface PrometheusOptions {
  /** Host and port to scrape, as the job `taxpayer-gateway`. */
  readonly target: string;
  /** Paths of rule files. */
  readonly rules: readonly string[];
}

/** A real Prometheus on a free loopback port that scrapes and evaluates five times a second. */
export async function startPrometheus({ target, rules }: PrometheusOptions) {
  const directory = scratch();
  const job = { job_name: 'taxpayer-gateway', static_configs: [{ targets: [target] }] };
  const global = { scrape_interval: '200ms', scrape_timeout: '200ms', evaluation_interval: '200ms' };
  const config = join(directory, 'prometheus.yml');
  await writeFile(config, JSON.stringify({ global, rule_files: rules, scrape_configs: [job] })); // JSON is YAML
  const address = `127.0.0.1:${await freePort()}`;
  const { answers } = startProgram('prometheus', [
    `--config.file=${config}`,
    `--storage.tsdb.path=${join(directory, 'data')}`,
    `--web.listen-address=${address}`,
  ]);
  await answers(`http://${address}/-/ready`);
  return {
    /** The `data` of a response of its HTTP API, below `/api/v1/`. */
    async get<Data>(path: string, parameters: Readonly<Record<string, string>> = {}): Promise<Data> {
      const response = await fetch(`http://${address}/api/v1/${path}?${new URLSearchParams(parameters)}`);
      const { status, data, error } = (await response.json()) as { status: string; data: Data; error?: string };
      if (status !== 'success') throw new Error(`${JSON.stringify(parameters)}: ${error}`);
      return data;
    },
  };
}
