import { Client, fetchExchange } from '@urql/core';
import { errorCodeOf, type TaxpayerStatus, TaxpayerTokenDocument } from 'taxpayer-gateway-client';

export async function run(url: string, taxpayerId: string) {
  const client = new Client({ url, exchanges: [fetchExchange], preferGetMethod: false });
  const { data } = await client.query(TaxpayerTokenDocument, { taxpayerId }).toPromise();
  const status: TaxpayerStatus | undefined = data?.taxpayerToken?.status;
  // @ts-expect-error a status is no number
  const _number: number | undefined = data?.taxpayerToken?.status;
  // @ts-expect-error the taxpayer's id is needed
  const { error } = await client.query(TaxpayerTokenDocument, {}).toPromise();
  return { status, code: errorCodeOf(error) };
}
