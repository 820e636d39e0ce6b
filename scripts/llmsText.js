// docs/llms.txt, in the format of llmstxt.org: what the project is, and every page of docs/ with its title and first sentence,
// for programs that read documentation. The README's table says which page is for whom.

import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

const root = new URL('../', import.meta.url);
const read = (path) => readFile(new URL(path, root), 'utf8');

export async function llmsText() {
  const readme = await read('README.md');
  const all = await readdir(fileURLToPath(new URL('docs', root)), { recursive: true });
  const pages = all.filter((name) => name.endsWith('.md')).sort();
  const rows = [...readme.matchAll(/^\| (\w[\w ]+) \| (.*\(docs\/.*) \|$/gm)].map(([, readers, links]) => {
    return [`For ${readers}`, [...links.matchAll(/\(docs\/([\w-]+\.md)\)/g)].map(([, name]) => name)];
  });
  const within = (folder) => pages.filter((name) => name.startsWith(`${folder}/`));
  const named = [...rows, ['Guides', within('guides')]];
  const decisions = within('decisions');
  const listed = new Set([...named.flatMap(([, names]) => names), ...decisions]);
  const more = pages.filter((name) => !listed.has(name));
  const sections = more.length > 0 ? [...named, ['More', more]] : named;
  const { title, summary } = faceOf(readme);
  const parts = [`# ${title}\n\n> ${summary}\n\nEach page is plain Markdown.\n`];
  for (const [name, names] of sections) parts.push(await section(name, names, ({ summary }) => `: ${summary}`));
  parts.push(await section('Optional', decisions, () => ': why it is so'));
  return parts.join('\n');
}

async function section(name, pages, notes) {
  const lines = pages.map(async (page) => {
    const face = faceOf(await read(`docs/${page}`));
    return `- [${face.title}](${page})${notes(face)}\n`;
  });
  return `## ${name}\n\n${(await Promise.all(lines)).join('')}`;
}

/** The title of a page, and the first sentence of its first paragraph, as plain text. */
function faceOf(text) {
  const blocks = text.replace(/```[\s\S]*?```/g, '').split(/\n{2,}/);
  const heading = blocks.findIndex((block) => block.startsWith('# '));
  const paragraph = blocks.slice(heading).find((block) => /^[A-Z`]/.test(block)) ?? '';
  const plain = paragraph.replace(/\[([^\]]+)\]\([^)]+\)/g, '$1').replace(/\s+/g, ' ');
  return {
    title: blocks[heading]?.slice(2).trim(),
    summary: /^.*?\.(?= |$)/.exec(plain)?.[0] ?? plain.replace(/:$/, '.'),
  };
}
