import { useEffect, useState } from 'react';

/** When the state that is shown was first read, and how long ago that is, kept up to date. */
export function Age({ since }: { readonly since: string }) {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.max(0, Math.round((now - Date.parse(since)) / 1000));
  const clock = new Date(since).toLocaleTimeString(undefined, { timeStyle: 'short' });
  return (
    <time dateTime={since}>
      Since {clock} ({inWords(seconds)} ago)
    </time>
  );
}

function inWords(seconds: number): string {
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  return seconds < 86_400 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86_400)} d`;
}
