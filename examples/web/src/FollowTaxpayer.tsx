import { useQuery } from '@apollo/client/react';
import { type FormEvent, useState } from 'react';
import { type TaxpayerStatus, TaxpayerTokenDocument } from 'taxpayer-gateway/client';
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
  const follow = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    setTaxpayerId(String(new FormData(event.currentTarget).get('taxpayerId')).trim());
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
        <Status key={taxpayerId} taxpayerId={taxpayerId} />
      )}
    </section>
  );
}

function Status({ taxpayerId }: { readonly taxpayerId: string }) {
  const { data, error, loading, refetch } = useQuery(TaxpayerTokenDocument, {
    // The gateway answers from its cache and asks the service at most once a minute, however many pages poll.
    variables: { taxpayerId, maxAgeSeconds: 60 },
    pollInterval: 15_000,
    fetchPolicy: 'cache-and-network',
  });
  const token = data?.taxpayerToken;
  return (
    <div aria-busy={loading}>
      {loading && !token && <p className="loading">Looking the taxpayer up…</p>}
      {error && <Problems error={error} onRetry={() => void refetch().catch(() => {})} />}
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
