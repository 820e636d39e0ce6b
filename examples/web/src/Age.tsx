import { useEffect, useState } from 'react';

/** How long ago something was read, kept up to date. */
export function Age({ since }: { readonly since: string }) {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.max(0, Math.round((now - Date.parse(since)) / 1000));
  const text = seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min`;
  return <time dateTime={since}>Read {text} ago</time>;
}
