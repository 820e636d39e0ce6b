/** Close codes of WebSockets (RFC 6455, 7.4, and its registry) that are not of `graphql-transport-ws`. */
export const goingAway = 1001;
export const tooBig = 1009;
export const tryAgainLater = 1013;
