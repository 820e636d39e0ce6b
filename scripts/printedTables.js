// What is printed into pages: between `<!-- printed: NAME -->` and `<!-- end -->` stands what a table of the code says.

/** The page with its printed parts anew. Throws when the page has no place for one of them. */
export function withPrinted(page, parts) {
  let text = page;
  for (const [name, lines] of Object.entries(parts)) {
    const place = new RegExp(`(<!-- printed: ${name} -->\\n\\n)[^]*?(\\n\\n(?:# )?<!-- end -->)`);
    if (!place.test(text))
      throw new Error(`A page has no place for "${name}": <!-- printed: ${name} --> … <!-- end -->`);
    text = text.replace(place, (_, begin, end) => begin + lines.join('\n').trimEnd() + end);
  }
  return text;
}

/** Rows of docs/configuration.md. */
export function settingRows(all) {
  const head = ['| Variable | Default | Meaning | Example |', '| --- | --- | --- | --- |'];
  const rows = all.map(
    ({ name, fallback, meaning, example, secret }) =>
      `| ${code(name)}${secret ? `<br>${code(`${name}_FILE`)}` : ''} | ${cell(fallback)} | ${escapeCell(meaning)} | ${code(example)} |`,
  );
  return [...head, ...rows];
}

/** What a gateway for the real service needs. */
const needed = [
  'UPSTREAM_BASE_URL',
  'UPSTREAM_CLIENT_ID',
  'UPSTREAM_CLIENT_SECRET',
  'AUTH_ISSUER',
  'AUTH_AUDIENCE',
  'CACHE_URL',
  'NODE_ENV',
];

/** Entries of .env.example, each commented out. */
export function envEntries(all) {
  return all
    .filter(({ name }) => needed.includes(name))
    .flatMap(({ name, fallback, meaning, example, secret }) => [
      `# ${meaning}`,
      `# Default: ${fallback}.${secret ? ` To read the value from a file, set ${name}_FILE to its path instead.` : ''}`,
      `# ${name}=${example}`,
      '',
    ]);
}

/** The table of docs/faults.md; `errorCodes` say which codes may be tried again. */
export function faultRows({ operations, classes }, errorCodes) {
  const names = Object.keys(operations);
  const word = (text) => (text === text.toUpperCase() ? code(text) : text);
  const answer = ({ code, calls, retryAfterSeconds }) => {
    const after = retryAfterSeconds === undefined ? '' : ` after ${retryAfterSeconds} s`;
    return `${word(code)}, ${calls}${errorCodes[code]?.retryable ? ', again' : ''}${after}`;
  };
  const row = ({ title, expect, sameKeyAgain, recovers }) => {
    const answers = Object.entries(operations).map(([name, { like }]) => answer(expect[name] ?? expect[like]));
    return `| ${title} | ${answers.join(' | ')} | ${word(sameKeyAgain)} | ${recovers} |`;
  };
  return [
    `| The service … | ${names.map(code).join(' | ')} | Same key later | Recovers |`,
    `| --- |${' --- |'.repeat(names.length)} --- | --- |`,
    ...classes.map(row),
  ];
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
