// Text of agents and people as Markdown: the little of it that helps reading. All of it becomes text nodes, and no link
// or picture is made of it, so that nothing that an agent writes can be pressed.
import { html } from "./lib.js";

const INLINE = /`([^`\n]+)`|\*\*([^*\n]+)\*\*/g;
const FENCE = /^\s*(```|~~~)/;
const HEAD = /^#{1,6}\s+(.*)/;
const ITEM = /^\s{0,8}([-*+]|\d{1,4}[.)])\s+(.*)/;

function inline(text) {
  const parts = [];
  let at = 0;
  for (const found of text.matchAll(INLINE)) {
    parts.push(
      text.slice(at, found.index),
      found[1] === undefined ? html`<b>${found[2]}</b>` : html`<code>${found[1]}</code>`,
    );
    at = found.index + found[0].length;
  }
  return [...parts, text.slice(at)];
}

// The lines as blocks: { kind, lines }, and of a numbered list its first number.
function blocksOf(text) {
  const blocks = [];
  let fenced = false;
  const add = (kind, line, more) => {
    const last = blocks.at(-1);
    if (last?.kind === kind && !last.ended) last.lines.push(line);
    else blocks.push({ kind, lines: [line], ...more });
  };
  const end = () => {
    if (blocks.length) blocks.at(-1).ended = true;
  };
  for (const line of text.replace(/\r\n/g, "\n").split("\n")) {
    const item = ITEM.exec(line);
    if (FENCE.test(line)) {
      fenced = !fenced;
      end();
      const rest = line.trim().replace(/^[`~]+\s*/, "");
      // The name of a language; anything else must not be hidden here.
      if (rest && !/^[\w+#-]{1,20}$/.test(rest)) add(fenced ? "pre" : "p", rest);
    } else if (fenced) add("pre", line);
    else if (!line.trim()) end();
    else if (HEAD.test(line)) {
      end();
      add("b", HEAD.exec(line)?.[1]);
      end();
    } else if (item) add(/\d/.test(item[1]) ? "ol" : "ul", item[2], { first: parseInt(item[1], 10) });
    else if (/^\s{2,}\S/.test(line) && /^[ou]l$/.test(blocks.at(-1)?.kind) && !blocks.at(-1).ended)
      blocks.at(-1).lines.push(`${blocks.at(-1).lines.pop()} ${line.trim()}`);
    else add("p", line);
  }
  return blocks;
}

function Block({ kind, lines, first }) {
  if (kind === "pre") return html`<pre class="fenced" tabindex="0">${lines.join("\n")}</pre>`;
  if (kind === "b") return html`<p><b>${inline(lines[0])}</b></p>`;
  if (kind === "p") return html`<p>${inline(lines.join("\n"))}</p>`;
  const items = lines.map((line, n) => html`<li key=${n}>${inline(line)}</li>`);
  return kind === "ol" ? html`<ol start=${first}>${items}</ol>` : html`<ul>${items}</ul>`;
}

export const Prose = ({ text, className = "prose" }) =>
  html`<div class=${className}>${blocksOf(text).map((one, n) => html`<${Block} key=${n} ...${one} />`)}</div>`;
