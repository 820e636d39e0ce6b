/** Sends JSON, given as a value or as its text. */
export function post(
  url: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
  more: RequestInit = {},
): Promise<Response> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: text,
    ...more,
  });
}
