// docs/faults.md: what callers get when the service misbehaves. Printed from the table that test/gateway/faults/faultTable.test.ts tries
// line by line on a running gateway, so the page cannot promise what the gateway does not do.

/** `errorCodes` of the gateway say which codes may be tried again. */
export function faultsPage({ operations, classes }, errorCodes) {
  const names = Object.keys(operations);
  const bound = ({ times, setting, readsToken }) =>
    `${times} × \`${setting}\`${readsToken ? " (the taxpayer's token may have to be read first)" : ''}`;
  return `<!-- Printed from test/gateway/faults/faultTable.json by \`npm run codegen\`. Change it there. -->

# When the service misbehaves

What a caller gets for each fault of the service behind the gateway, when nothing is cached yet. A cell has the
\`extensions.code\`, then how often the gateway calls the faulty endpoint for one request; **again** means \`retryable: true\`,
and the seconds are \`retryAfterSeconds\`. Nothing the service says in an error reaches a caller or a log.

A request is answered within these times, whatever the answer; a try that was too slow is repeated only while they last:

${names.map((name) => `- \`${name}\`: ${bound(operations[name])}`).join('\n')}

These waits may come first: up to \`UPSTREAM_DEADLINE_MS\` for a free slot, while the caller has 32 reads and creations in
flight (requests for the same record or job share one); 3 s for the lease of a process that died; up to \`UPSTREAM_DEADLINE_MS\` plus 2 s for another try with the same
\`idempotencyKey\`.

The last two columns say what a second \`createClientLink\` with the same \`idempotencyKey\` and input gets once the service
works again, and when other requests succeed again. No restart is needed.

| The service … | ${names.map((name) => `\`${name}\``).join(' | ')} | Same key later | Recovers |
| --- |${' --- |'.repeat(names.length)} --- | --- |
${classes.map((row) => line(row, operations, errorCodes)).join('\n')}

A record that was read before is served with \`stale: true\` instead of most of these errors. When a process fails twice in a row
to read a record, it backs off from that record for a second, doubled with each further failure up to \`BREAKER_RESET_MS\`.

A 403 on \`taxpayerToken\` or \`createClientLink\` concerns that request alone. After three different requests of one caller in a
row got a 403, that caller's calls stop for 30 seconds with \`UPSTREAM_CREDENTIALS_REJECTED\`. If they came from three callers, or
callers have no identity, the calls of the whole fleet stop.

Each process has a circuit breaker for an endpoint that keeps failing (network, timeout, 5xx, 408, 425). While it is open, requests fail at
once with \`UPSTREAM_UNAVAILABLE\`, without a call. It opens:

- For one caller, when their calls about 5 different taxpayers or jobs fail in a row within 10 seconds. Each creation of a link
  counts. An id that always fails counts once. Callers without an identity count as one caller.
- For everybody, when 3 callers fail in a row within 10 seconds, each about another taxpayer, and nobody's call is answered
  between. Calls on their way are not called back, but not tried again either: an outage that twenty callers meet in turn costs 9
  calls, one that they meet at once from 26 to 60.

After \`BREAKER_RESET_MS\` one call is a trial, and the others wait for it. It closes when the trial is answered; a trial that
was not made proves nothing. After a failed trial for everybody, another caller makes the next one, or the same caller after
twice \`BREAKER_RESET_MS\`.

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
