// docs/faults.md: what callers get when the service misbehaves. Printed from the table that test/upstream/faultTable.test.ts tries
// line by line on a running gateway, so the page cannot promise what the gateway does not do.

/** `errorCodes` of the gateway say which codes may be tried again. */
export function faultsPage({ operations, classes }, errorCodes, command) {
  const names = Object.keys(operations);
  const bound = ({ times, setting, readsToken }) =>
    `${times} × \`${setting}\`${readsToken ? " (the taxpayer's token may have to be read first)" : ''}`;
  return `<!-- Printed from test/upstream/faultTable.json by \`${command}\`. Change it there. -->

# When the service misbehaves

What a caller gets for each fault of the service behind the gateway, when nothing is cached yet. The code is in
\`extensions.code\`; **again** marks the codes with \`retryable: true\`, and a time in seconds is \`retryAfterSeconds\`. The number
is how often the gateway calls the endpoint at fault for one request. Nothing the service says in an error reaches a caller
or a log.

A request that waits for no other is answered within the times below, whatever the answer; a try that was too slow is repeated
only while they last. These waits come before that: up to \`UPSTREAM_DEADLINE_MS\` for a place, while the caller has 32 reads
and creations under way; 3 s for the lease of a process that died; and up to \`UPSTREAM_DEADLINE_MS\` and 2 s for another try
with the same \`idempotencyKey\`.

${names.map((name) => `- \`${name}\`: ${bound(operations[name])}`).join('\n')}

The last two columns are about what follows: what a second \`createClientLink\` with the same \`idempotencyKey\` and input gets
once the service is well, and when other requests succeed again. Nobody has to restart anything.

| The service … | ${names.map((name) => `\`${name}\``).join(' | ')} | Same key later | Recovers |
| --- |${' --- |'.repeat(names.length)} --- | --- |
${classes.map((row) => line(row, operations, errorCodes)).join('\n')}

A record that was read before is served with \`stale: true\` in place of most of these errors. One that could not be read twice
in a row is left alone by that process for a second, then for twice as long after each further time, up to \`BREAKER_RESET_MS\`.

400 and 431 to a taxpayer's token that is longer than 4,096 characters, or holds others than
[RFC 6750, 2.1](https://www.rfc-editor.org/rfc/rfc6750#section-2.1) has, count as a 401: the header may be what is refused.

A 403 on \`taxpayerToken\` or \`createClientLink\` is about that request. When three different requests of one caller meet it
in a row, that caller's calls stop for 30 seconds with \`UPSTREAM_CREDENTIALS_REJECTED\`. When requests of three callers do, the
calls of the whole fleet stop; so they do after three different requests where callers have no identity.

An endpoint that keeps failing (network, time limit, 5xx) is left alone for \`BREAKER_RESET_MS\`: requests then fail at once
with \`UPSTREAM_UNAVAILABLE\`, without a call, and the first one after that time tries again. Each process decides that:

- For one caller, when of the last 20 taxpayers or jobs they asked for within 10 seconds at least 5 fail, and at least half.
  Creations of links count one by one. An id that always fails counts once. Callers without an identity count as one.
- For everybody, when at least half of the callers who asked within 10 seconds are affected: at least 2 to whom the first rule
  applies, or at least 5 with failing calls.

The same, fault by fault:

${classes.map(({ title, faults }) => `- **${title}**: ${faults.map(({ when }) => when).join('; ')}`).join('\n')}
`;
}

function line({ title, expect, sameKeyAgain, recovers }, operations, errorCodes) {
  const cells = Object.entries(operations).map(([name, { like }]) => cell(expect[name] ?? expect[like], errorCodes));
  return `| ${title} | ${cells.join(' | ')} | ${word(sameKeyAgain)} | ${recovers} |`;
}

function cell({ code, calls, retryAfterSeconds }, errorCodes) {
  const again = errorCodes[code]?.retryable ? ', again' : '';
  const after = retryAfterSeconds === undefined ? '' : ` after ${retryAfterSeconds} s`;
  return `${word(code)}, ${calls}${again}${after}`;
}

/** Codes are set as code; "answered" and "created" are words. */
function word(text) {
  return text === text.toUpperCase() ? `\`${text}\`` : text;
}
