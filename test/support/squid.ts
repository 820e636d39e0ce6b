import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './freePort.js';
import { until } from './until.js';

/** Debian's Squid on a free loopback port. It resolves `service.test` to loopback, and requires `login` if given. */
export async function startSquid(login?: { readonly user: string; readonly password: string }) {
  const directory = mkdtempSync(join(tmpdir(), 'squid-'));
  chmodSync(directory, 0o777); // Squid drops its root privileges
  const file = (name: string, content = '') => {
    writeFileSync(join(directory, name), content, { mode: 0o666 });
    chmodSync(join(directory, name), 0o666);
    return join(directory, name);
  };
  const port = await freePort();
  const log = file('access.log');
  const users = login && file('users', `${login.user}:${hashOf(login.password)}\n`);
  const config = [
    ...[`http_port 127.0.0.1:${port}`, `pid_filename ${join(directory, 'pid')}`, `coredump_dir ${directory}`],
    ...['cache deny all', `access_log stdio:${log}`, `cache_log ${file('cache.log')}`, 'shutdown_lifetime 0 seconds'],
    `hosts_file ${file('hosts', '127.0.0.1 service.test\n')}`,
    ...(users === undefined
      ? ['http_access allow all']
      : [`auth_param basic program /usr/lib/squid/basic_ncsa_auth ${users}`]),
    ...(users === undefined
      ? []
      : ['acl known proxy_auth REQUIRED', 'http_access allow known', 'http_access deny all']),
  ];
  const program = 'squid';
  const child = spawn(program, ['-N', '-f', file('squid.conf', `${config.join('\n')}\n`)], { stdio: 'ignore' });
  const killWithUs = () => void child.kill('SIGKILL');
  process.once('exit', killWithUs);
  await until(() => readFileSync(join(directory, 'cache.log'), 'utf8').includes('Accepting HTTP'));
  return {
    port,
    /** The access log: a line for each completed request. */
    lines: () => readFileSync(log, 'utf8').split('\n').filter(Boolean),
    stop: async () => {
      process.off('exit', killWithUs);
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

function hashOf(password: string): string {
  return execFileSync('openssl', ['passwd', '-apr1', password], { encoding: 'utf8' }).trim();
}
