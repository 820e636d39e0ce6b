import { useQuery, useSubscription } from '@apollo/client/react';
import { type FormEvent, useState } from 'react';
import type { TaxpayerStatus } from 'taxpayer-gateway-client';
import { Age } from './Age.js';
import { TaxpayerChangesDocument, TaxpayerDocument } from './generated/operations.js';
import { Problems } from './Problems.js';
import { useReconnecting } from './reconnecting.js';
import { useRestart } from './useRestart.js';

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
        <Status key={attempt} taxpayerId={taxpayerId} onEnd={() => setAttempt(attempt + 1)} />
      )}
    </section>
  );
}

function Status({ taxpayerId, onEnd }: { readonly taxpayerId: string; readonly onEnd: () => void }) {
  const variables = { taxpayerId };
  const { data, error } = useQuery(TaxpayerDocument, { variables, errorPolicy: 'all' });
  const [isEnded, setEnded] = useState(false);
  // Each change is written to the cache, and so to `data`.
  const live = useSubscription(TaxpayerChangesDocument, { variables, onComplete: () => setEnded(true) });
  const isReconnecting = useReconnecting();
  const token = data?.taxpayerToken;
  const problem = error ?? live.error;
  const isLoading = !token && !problem;
  // A final status ends the stream and its connection.
  const isOver = token?.status === 'COMPLETED' || token?.status === 'REJECTED';
  useRestart(isEnded && !isOver && !live.error, onEnd);
  return (
    <div aria-busy={isLoading}>
      {isLoading && <p className="loading">Looking the taxpayer up…</p>}
      {isReconnecting && !isOver && !problem && <p role="status">Reconnecting…</p>}
      {problem && <Problems error={problem} />}
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
