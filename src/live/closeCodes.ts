/** Standard WebSocket close codes (RFC 6455, 7.4, and its registry), in addition to those of `graphql-transport-ws`. */
export const goingAway = 1001;
export const tooBig = 1009;
export const tryAgainLater = 1013;
