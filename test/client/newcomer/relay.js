import relay from 'relay-runtime';
import { errorCodeOf } from 'taxpayer-gateway-client';
import query from './__generated__/relayQueriesTaxpayerQuery.graphql.js';

export async function run(url, taxpayerId) {
  const answers = [];
  const network = relay.Network.create(async ({ id, text }, variables) => {
    // With persisted queries there is an id and no text.
    const body = JSON.stringify({ documentId: id, query: text, variables });
    const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    answers.push(await response.json());
    return answers.at(-1);
  });
  const environment = new relay.Environment({ network, store: new relay.Store(new relay.RecordSource()) });
  const ask = (id) => relay.fetchQuery(environment, query, { id }).toPromise();
  const { taxpayer } = await ask(taxpayerId);
  await ask('nobody');
  return { status: taxpayer.token.status, code: errorCodeOf(answers.at(-1)) };
}
