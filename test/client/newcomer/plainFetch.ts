import { print } from 'graphql';
import { errorCodeOf, TaxpayerTokenDocument, type TaxpayerTokenQuery } from 'taxpayer-gateway-client';

export async function run(url: string, taxpayerId: string) {
  const ask = async (id: string) => {
    const body = JSON.stringify({ query: print(TaxpayerTokenDocument), variables: { taxpayerId: id } });
    const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    return (await response.json()) as { data?: TaxpayerTokenQuery };
  };
  return { status: (await ask(taxpayerId)).data?.taxpayerToken?.status, code: errorCodeOf(await ask('nobody')) };
}
