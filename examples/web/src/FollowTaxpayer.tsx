import { type FormEvent, useEffect, useState } from 'react';
import { type TaxpayerStatus, type TokenUpdate, watchTaxpayerToken } from 'taxpayer-gateway-client';
import { Age } from './Age.js';
import { Problems } from './Problems.js';

const steps: readonly { readonly status: TaxpayerStatus; readonly label: string }[] = [
  { status: 'CREATED', label: 'Invited' },
  { status: 'CONSENT_RECEIVED', label: 'Consent given' },
  { status: 'TAX_AUTHORIZATION_SUBMITTED', label: 'Form submitted' },
  { status: 'AUTHORIZED', label: 'Authorized' },
  { status: 'COMPLETED', label: 'Completed' },
];

export function FollowTaxpayer() {
  const [taxpayerId, setTaxpayerId] = useState('');
  const [attempt, setAttempt] = useState(0);
  const follow = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    setTaxpayerId(String(new FormData(event.currentTarget).get('taxpayerId')).trim());
    setAttempt(attempt + 1);
  };
  return (
    <section aria-labelledby="taxpayer">
      <h2 id="taxpayer">Taxpayer</h2>
      <form className="inline" onSubmit={follow}>
        <p className="field">
          <label htmlFor="taxpayer-id">Taxpayer id</label>
          <input id="taxpayer-id" name="taxpayerId" required autoComplete="off" spellCheck={false} />
        </p>
        <button type="submit">Follow</button>
      </form>
      {taxpayerId === '' ? (
        <p className="empty">Nobody is followed yet. The taxpayer's page shows the id.</p>
      ) : (
        <Status key={attempt} taxpayerId={taxpayerId} />
      )}
    </section>
  );
}

/** Follows a taxpayer for as long as the page shows them; `watchTaxpayerToken` connects again by itself. */
function useTaxpayer(taxpayerId: string) {
  const [token, setToken] = useState<TokenUpdate>();
  const [error, setError] = useState<unknown>();
  const [isReconnecting, setReconnecting] = useState(false);
  useEffect(() => {
    const leaving = new AbortController();
    const follow = async () => {
      const { signal } = leaving;
      const url = `${location.origin}/graphql`;
      const onReconnect = () => setReconnecting(true);
      // A record that did not change is not sent again, so the answer itself tells that the connection is back.
      const fetchAndTell: typeof fetch = async (...request) => {
        const response = await fetch(...request);
        if (response.ok) setReconnecting(false);
        return response;
      };
      const updates = watchTaxpayerToken({ url, taxpayerId, signal, onReconnect, fetch: fetchAndTell });
      for await (const update of updates) setToken(update);
    };
    follow().catch(setError);
    return () => leaving.abort();
  }, [taxpayerId]);
  return { token, error, isReconnecting };
}

function Status({ taxpayerId }: { readonly taxpayerId: string }) {
  const { token, error, isReconnecting } = useTaxpayer(taxpayerId);
  const isLoading = token === undefined && error === undefined;
  return (
    <div aria-busy={isLoading}>
      {isLoading && <p className="loading">Looking the taxpayer up…</p>}
      {isReconnecting && <p role="status">Reconnecting…</p>}
      {error !== undefined && <Problems error={error} />}
      {token && (
        <>
          <p role="status">
            <span className={`badge ${token.status.toLowerCase()}`} id="taxpayer-status">
              {token.status.replaceAll('_', ' ').toLowerCase()}
            </span>{' '}
            {token.name}
          </p>
          <ol className="steps" aria-label="Progress of the authorization">
            {steps.map(({ status, label }) => (
              <li key={status} aria-current={status === token.status ? 'step' : undefined}>
                {label}
              </li>
            ))}
          </ol>
          {token.status === 'REJECTED' && <p>The authorization was refused. A new link starts it again.</p>}
          <p className="fine">
            <Age since={token.fetchedAt} /> · {token.provider.replaceAll('_', ' ')}
            {token.stale && <strong> · the service does not answer, this may be outdated</strong>}
          </p>
        </>
      )}
    </div>
  );
}
