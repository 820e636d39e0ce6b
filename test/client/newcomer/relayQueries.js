// What Relay's compiler reads; it writes __generated__.
import { graphql } from 'relay-runtime';

export const query = () => graphql`
  query relayQueriesTaxpayerQuery($id: ID!) {
    taxpayer(id: $id) {
      token {
        status
      }
    }
  }
`;
