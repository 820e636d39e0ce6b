import { createClient, TerminatedCloseEvent } from 'graphql-ws';
import { accessToken } from './accessToken.js';

let silence: ReturnType<typeof setTimeout>;

/** The WebSocket of Apollo Client's subscriptions. It connects again by itself, after pauses that grow to 30 s at most. */
export const liveClient = createClient({
  url: `${location.origin.replace(/^http/, 'ws')}/graphql`,
  connectionParams: async () => {
    const token = await accessToken();
    return token ? { authorization: `Bearer ${token}` } : {};
  },
  keepAlive: 12_000, // a page does not see the pings of the gateway, and graphql-ws does not miss answers to its own
  on: {
    ping: () => {
      silence = setTimeout(() => liveClient.terminate(), 12_000);
    },
    pong: () => clearTimeout(silence),
    closed: () => clearTimeout(silence),
  },
  retryAttempts: 100,
  // Also when the gateway cannot be reached, which is an Event. An Error comes from `connectionParams`.
  shouldRetry: (problem) => !(problem instanceof Error) || problem instanceof TerminatedCloseEvent,
  retryWait: async (retries) => {
    const ms = Math.min(30_000, 1000 * 2 ** retries) * (0.5 + Math.random() / 2);
    await new Promise((resolve) => setTimeout(resolve, ms));
  },
});
