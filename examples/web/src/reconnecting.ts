import { useEffect, useState } from 'react';
import { liveClient } from './liveClient.js';

/** Whether the connection was lost. (The connection is also closed when nothing is followed any more.) */
export function useReconnecting(): boolean {
  const [isReconnecting, setReconnecting] = useState(false);
  useEffect(() => {
    const offClosed = liveClient.on('closed', () => setReconnecting(true));
    const offConnected = liveClient.on('connected', () => setReconnecting(false));
    return () => {
      offClosed();
      offConnected();
    };
  }, []);
  return isReconnecting;
}
