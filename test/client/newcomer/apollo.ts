import { ApolloClient, HttpLink, InMemoryCache } from '@apollo/client';
import { errorCodeOf, type TaxpayerStatus, TaxpayerTokenDocument } from 'taxpayer-gateway-client';

export async function run(url: string, taxpayerId: string) {
  const client = new ApolloClient({ link: new HttpLink({ uri: url }), cache: new InMemoryCache() });
  // @ts-expect-error the taxpayer's id is needed
  const _misuse = () => client.query({ query: TaxpayerTokenDocument, variables: {} });
  const { data } = await client.query({ query: TaxpayerTokenDocument, variables: { taxpayerId } });
  const status: TaxpayerStatus | undefined = data?.taxpayerToken?.status;
  // @ts-expect-error a status is no number
  const _number: number | undefined = data?.taxpayerToken?.status;
  const failure = await client.query({ query: TaxpayerTokenDocument, variables: { taxpayerId: 'nobody' } }).then(
    () => undefined,
    (error: unknown) => error,
  );
  return { status, code: errorCodeOf(failure) };
}
