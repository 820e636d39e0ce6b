import { type Browser, chromium } from 'playwright-core';
import { atEnd } from './atEnd.js';

/** A real browser that reaches only this machine: requests of a page to other hosts fail. */
export async function launchBrowser(): Promise<Browser> {
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost',
    ],
  });
  atEnd(() => browser.close());
  return browser;
}
