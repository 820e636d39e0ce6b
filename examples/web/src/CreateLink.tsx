import { useMutation } from '@apollo/client/react';
import { type FormEvent, useEffect, useRef, useState } from 'react';
import { CreateClientLinkDocument } from 'taxpayer-gateway-client';
import { groups, inputOf, transcripts } from './fields.js';
import { Problems } from './Problems.js';

export function CreateLink() {
  const [create, { data, error, loading, reset }] = useMutation(CreateClientLinkDocument);
  const form = useRef<HTMLFormElement>(null);
  // One key for one filled-in form: sending it twice, or again after an error, creates one link.
  const [key, setKey] = useState(() => crypto.randomUUID());

  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const input = inputOf(new FormData(event.currentTarget), key);
    create({ variables: { input } }).catch(() => {}); // shown below
  };
  const startOver = () => {
    form.current?.reset();
    setKey(crypto.randomUUID());
    reset();
  };

  return (
    <section aria-labelledby="create">
      <h2 id="create">New client link</h2>
      <form ref={form} onSubmit={submit} onChange={() => (error || data) && setKey(crypto.randomUUID())}>
        <p className="fine">All fields are optional. The taxpayer won't have to type what you fill in.</p>
        <div className="pair">
          <Field name="reference" label="Your reference" />
          <Field name="flowType" label="Flow" defaultValue="full" />
        </div>
        {groups.map(({ key: group, legend, fields }, index) => (
          <details key={group} open={index === 0}>
            <summary>{legend}</summary>
            <fieldset>
              <legend className="unseen">{legend}</legend>
              {fields.map(({ name, label }) => (
                <Field key={name} name={`${group}.${name}`} label={label} />
              ))}
            </fieldset>
          </details>
        ))}
        <details>
          <summary>Transcripts</summary>
          <fieldset>
            <legend className="fine">Items of each kind, separated by commas</legend>
            {transcripts.map(({ name, label }) => (
              <Field key={name} name={`transcripts.${name}`} label={label} />
            ))}
          </fieldset>
        </details>
        <p className="actions">
          <button type="submit" className="primary" disabled={loading}>
            {loading ? 'Creating…' : 'Create link'}
          </button>
          <button type="button" onClick={startOver}>
            Start over
          </button>
        </p>
      </form>
      {error && <Problems error={error} onRetry={() => form.current?.requestSubmit()} />}
      {data && <CreatedLink {...data.createClientLink.clientLink} replayed={data.createClientLink.replayed} />}
    </section>
  );
}

function Field({
  name,
  label,
  defaultValue,
}: {
  readonly name: string;
  readonly label: string;
  readonly defaultValue?: string;
}) {
  const id = `field-${name}`;
  return (
    <p className="field">
      <label htmlFor={id}>{label}</label>
      <input id={id} name={name} defaultValue={defaultValue} autoComplete="off" />
    </p>
  );
}

function CreatedLink({ url, replayed }: { readonly url: string; readonly replayed: boolean }) {
  const [copied, setCopied] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => box.current?.focus(), []);
  const copy = async () => {
    await navigator.clipboard.writeText(url);
    setCopied(true);
  };
  return (
    <div className="result" role="status" tabIndex={-1} ref={box}>
      <h3>{replayed ? 'This link was created before' : 'The link is ready'}</h3>
      <p>
        <code id="link">{url}</code>
      </p>
      <p className="actions">
        <a className="button primary" href={url} target="_blank" rel="noreferrer">
          Open<span className="unseen"> the link in a new tab</span>
        </a>
        <button type="button" onClick={copy}>
          {copied ? 'Copied' : 'Copy'}
        </button>
      </p>
    </div>
  );
}
