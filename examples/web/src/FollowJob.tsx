import { useSubscription } from '@apollo/client/react';
import { type FormEvent, useState } from 'react';
import { RefreshJobUpdatedDocument } from 'taxpayer-gateway-client';
import { Age } from './Age.js';
import { Problems } from './Problems.js';
import { useReconnecting } from './reconnecting.js';
import { useRestart } from './useRestart.js';

interface JobIds {
  readonly taxpayerId: string;
  readonly jobId: string;
}

export function FollowJob() {
  const [ids, setIds] = useState<JobIds>();
  const [attempt, setAttempt] = useState(0);
  const follow = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    setIds({ taxpayerId: String(form.get('taxpayerId')).trim(), jobId: String(form.get('jobId')).trim() });
    setAttempt(attempt + 1);
  };
  return (
    <section aria-labelledby="job">
      <h2 id="job">Data refresh</h2>
      <form onSubmit={follow}>
        <p className="field">
          <label htmlFor="job-taxpayer-id">Taxpayer id</label>
          <input id="job-taxpayer-id" name="taxpayerId" required autoComplete="off" spellCheck={false} />
        </p>
        <div className="inline">
          <p className="field">
            <label htmlFor="job-id">Job id</label>
            <input id="job-id" name="jobId" required autoComplete="off" spellCheck={false} />
          </p>
          <button type="submit">Watch</button>
        </div>
      </form>
      {ids === undefined ? (
        <p className="empty">No job is watched yet.</p>
      ) : (
        <Progress key={attempt} ids={ids} onEnd={() => setAttempt(attempt + 1)} />
      )}
    </section>
  );
}

const words = {
  PROCESSING: 'The data is being refreshed.',
  COMPLETED: 'The data is refreshed.',
  FAILED: 'The refresh failed. Start another one.',
  UNRECOGNIZED: 'The service reports a state this page does not know.',
} as const;

function Progress({ ids, onEnd }: { readonly ids: JobIds; readonly onEnd: () => void }) {
  const isReconnecting = useReconnecting();
  const [isEnded, setEnded] = useState(false);
  const live = useSubscription(RefreshJobUpdatedDocument, { variables: ids, onComplete: () => setEnded(true) });
  const { data, error, loading, restart } = live;
  const job = data?.refreshJobUpdated;
  const isRunning = job?.status === 'PROCESSING' || job?.status === 'UNRECOGNIZED';
  useRestart(isEnded && isRunning && !error, onEnd);
  return (
    <div aria-busy={loading}>
      {loading && !job && !error && (
        <p className="loading">{isReconnecting ? 'The gateway cannot be reached. Reconnecting…' : 'Connecting…'}</p>
      )}
      {isReconnecting && isRunning && !error && <p role="status">Reconnecting…</p>}
      {error && <Problems error={error} onRetry={restart} />}
      {job && (
        <>
          <p role="status">
            <span className={`badge ${job.status.toLowerCase()}`} id="job-status">
              {job.status.toLowerCase()}
            </span>{' '}
            {words[job.status]}
          </p>
          <progress aria-label={job.name} max={1} {...(!isRunning && { value: job.status === 'COMPLETED' ? 1 : 0 })} />
          <p className="fine">
            {job.name} · <Age since={job.observedAt} />
          </p>
        </>
      )}
    </div>
  );
}
