// docs/configuration.md and .env.example, printed from the table of settings.

const command = 'npm run codegen';

export function configurationPage(all) {
  const rows = all.map(
    ({ name, fallback, meaning, example, secret }) =>
      `| ${code(name)}${secret ? `<br>${code(`${name}_FILE`)}` : ''} | ${cell(fallback)} | ${escapeCell(meaning)} | ${code(example)} |`,
  );
  return `<!-- Printed from src/config/settings.ts by \`${command}\`. Change it there. -->

# Configuration

The gateway is configured by environment variables, read once at the start. Every mistake is reported in one go, one line
each, and ends the process with exit code 1. An empty variable counts as unset. A variable that begins like a setting and is none
is a warning that names the nearest setting; so is a value in quotation marks, which \`docker run --env-file\` keeps as part of it.

A confidential setting may come from a file instead: \`<NAME>_FILE\` holds the path. Set the one or the other, not both. In a
variable as in a file, a byte order mark at the beginning and one line break at the end are ignored. Other control characters are
refused, but for line breaks and tabs between the parts of a list or of JSON.

| Variable | Default | Meaning | Example |
| --- | --- | --- | --- |
${rows.join('\n')}

## Traces

With \`OTEL_EXPORTER_OTLP_ENDPOINT\` each request, stream and socket on \`/graphql\` becomes a trace: the request, its operations,
and each call to the service and to the store, continuing the caller's \`traceparent\`. Names and attributes are those of
OpenTelemetry's semantic conventions; none is an id or a name that a caller or the service chose. Log lines written for a
request have its \`traceId\`.

The OpenTelemetry SDK sends spans as OTLP over HTTP, with JSON or Protobuf, to \`/v1/traces\` under that address. These standard
variables work as it documents them, and the first row also as \`OTEL_EXPORTER_OTLP_TRACES_HEADERS\` and so on:

| Variables | Set |
| --- | --- |
| \`OTEL_EXPORTER_OTLP_HEADERS\`, \`_COMPRESSION\`, \`_TIMEOUT\` | How spans are sent |
| \`OTEL_SERVICE_NAME\`, \`OTEL_RESOURCE_ATTRIBUTES\` | What the gateway is called; by default \`taxpayer-gateway\` |
| \`OTEL_TRACES_SAMPLER\`, \`OTEL_TRACES_SAMPLER_ARG\` | Which traces are recorded; by default all, except those that the caller does not record |
| \`OTEL_BSP_SCHEDULE_DELAY\`, \`OTEL_BSP_MAX_EXPORT_BATCH_SIZE\` | When spans are sent: by default after 1000 ms, or 512 of them |
| \`OTEL_TRACES_EXPORTER\` | \`none\` turns traces off, as \`OTEL_SDK_DISABLED=true\` does |

One that is wrong is a warning at start and in \`check\`, and has no effect.
`;
}

export function envExample(all) {
  const entries = all.map(
    ({ name, fallback, meaning, example, secret }) =>
      `# ${meaning}\n# Default: ${fallback}.${secret ? ` To read the value from a file, set ${name}_FILE to its path instead.` : ''}\n# ${name}=${example}\n`,
  );
  return `# Printed from src/config/settings.ts by \`${command}\`; change it there. Every setting, commented out, with an example value.
# Copy to .env, uncomment what you need, and start with: npm run build && node --env-file=.env dist/main.js

${entries.join('\n')}`;
}

/** A literal default is set as code; one described in words stays words. */
function cell(fallback) {
  return /\s/.test(fallback) || fallback === 'none' ? escapeCell(fallback) : code(fallback);
}

function code(text) {
  return `\`${escapeCell(text)}\``;
}

function escapeCell(text) {
  return text.replaceAll('|', '\\|').replaceAll('<', '&lt;');
}
