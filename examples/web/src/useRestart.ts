import { useEffect } from 'react';

/** Calls `restart` a second after the gateway has ended a stream that is not over, as it does after an hour. */
export function useRestart(mustRestart: boolean, restart: () => void): void {
  useEffect(() => {
    if (!mustRestart) return;
    const timer = setTimeout(restart, 1000);
    return () => clearTimeout(timer);
  }, [mustRestart, restart]);
}
