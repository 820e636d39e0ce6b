// One command for app, gateway and sandbox: starts the gateway of this repository (which runs the sandbox of the service)
// and Vite in front of it. GATEWAY_PORT and APP_PORT choose the ports; 0 picks a free one.

import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { createServer } from 'vite';

const repository = fileURLToPath(new URL('../..', import.meta.url));
if (!existsSync(`${repository}/node_modules`)) {
  // npm has installed only this example: neither the gateway, nor the dependencies of the linked client.
  console.error('Installing the gateway…');
  const { status } = spawnSync('npm', ['ci', '--no-audit'], { cwd: repository, stdio: ['ignore', 2, 2] });
  if (status !== 0) process.exit(status ?? 1);
}

spawnSync('npm', ['run', '--silent', 'build'], { cwd: repository, stdio: ['ignore', 2, 2] });

const appPort = Number(process.env.APP_PORT ?? 5173);
const gateway = spawn(process.execPath, [`${repository}/dist/main.js`], {
  env: {
    CACHE_URL: 'memory:',
    // The sandbox may be asked every second, so that the page shows each step at once; a real service may not.
    ...(!process.env.UPSTREAM_BASE_URL && { TOKEN_FRESH_SECONDS: '1', TOKEN_BUDGET_PER_HOUR: '0' }),
    ...process.env,
    PORT: process.env.GATEWAY_PORT ?? process.env.PORT ?? '4000',
    CORS_ORIGINS: '',
  },
  stdio: ['ignore', 'pipe', 'inherit'],
});
gateway.once('exit', (code) => process.exit(code ?? 1));
// Also when the app cannot start. No second signal, because that would end the gateway at once.
process.once('exit', () => gateway.killed || gateway.kill('SIGTERM'));
process.on('SIGTERM', () => gateway.kill('SIGTERM'));
process.on('SIGINT', () => {}); // Ctrl-C also reaches the gateway, and this process ends with the gateway.

const ready = await readyLine(gateway.stdout);
const target = ready.graphql.replace(/\/graphql$/, '');
const vite = await createServer({
  root: fileURLToPath(new URL('.', import.meta.url)),
  logLevel: 'warn',
  server: {
    port: appPort,
    strictPort: appPort !== 0,
    host: '127.0.0.1',
    // The page and the gateway are one origin to the browser, so nothing has to be allowed across origins.
    proxy: { '/graphql': { target, ws: true } },
  },
});
await vite.listen().catch(({ message }) => {
  console.error(`${message}: stop the other process or set APP_PORT`);
  process.exit(1);
});
const { port } = vite.httpServer.address();
console.log(`App:     http://127.0.0.1:${port}/\nGateway: ${ready.graphql}`);

/** The gateway logs its addresses in one line of JSON. All other lines are passed on. */
function readyLine(stream) {
  return new Promise((resolve) => {
    let text = '';
    const read = (chunk) => {
      text += chunk;
      const lines = text.split('\n');
      const found = lines.find((line) => line.includes('"graphql"') && line.endsWith('}'));
      if (!found) return;
      stream.off('data', read).pipe(process.stderr);
      process.stderr.write(lines.filter((line) => line !== found).join('\n'));
      resolve(JSON.parse(found));
    };
    stream.setEncoding('utf8').on('data', read);
  });
}
