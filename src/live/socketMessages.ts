import {
  type CompleteMessage,
  type ConnectionInitMessage,
  MessageType,
  type PingMessage,
  type PongMessage,
  parseMessage,
  type SubscribeMessage,
} from 'graphql-ws';
import { isNestedWithin, parseJson } from '../json.js';

/** What a client says in the protocol `graphql-transport-ws`. */
export type ClientMessage = ConnectionInitMessage | PingMessage | PongMessage | SubscribeMessage | CompleteMessage;

/** The payload of a ping goes back as it came, so it is nested no deeper than can be written. */
const maxPingDepth = 64;

/** A message as it came; undefined for what is none that a client may send. */
export function readMessage(text: string): ClientMessage | undefined {
  try {
    const json = parseJson(text);
    if (typeof json !== 'object') return undefined; // `parseMessage` would read a string once more
    const message = parseMessage(json);
    switch (message.type) {
      case MessageType.Ping:
        return isNestedWithin(message.payload, maxPingDepth) ? message : undefined;
      case MessageType.ConnectionInit:
      case MessageType.Pong:
      case MessageType.Subscribe:
      case MessageType.Complete:
        return message;
      default:
        return undefined;
    }
  } catch {
    return undefined;
  }
}
