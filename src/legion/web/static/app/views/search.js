// Search in all tickets and in the conversations with agents.
import { html, useEffect, useState } from "../lib.js";
import { takeFocus } from "../writing.js";
import { Hint, Output, Rows, TicketLink, TicketRow, Trouble } from "../parts.js";
import { project, useRead } from "../state.js";
import { ago, bytes, day, plain, plural } from "../format.js";

const PAUSE = 350; // Milliseconds after the last letter.

export function Search() {
  const [words, setWords] = useState("");
  const { data, error } = useRead("/v1/status", { cwd: project.value, all: true }, /^ticket\.created$/);
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const text = (one) => `#${one.id} ${one.title} ${one.state} ${one.epic} ${one.project} ${one.reason}`.toLowerCase();
  const found = (data?.tickets ?? []).filter((one) => wanted.every((word) => text(one).includes(word)));
  const about = (one) => html`<span class="about">${one.epic} ${ago(one.moved_at)} ago</span>`;
  const row = (one) => html`<${TicketRow} key=${one.id} one=${one} about=${about(one)} />`;
  return html`<section ref=${takeFocus}>
    <h1>Search</h1>
    <input type="search" aria-label="Search tickets and conversations" placeholder="Tickets and conversations"
      value=${words} onInput=${(event) => setWords(event.target.value)} />
    <${Trouble} error=${error} />${wanted.length > 0 && html`<${Conversations} query=${words.trim()} />`}
    ${data && html`<h2>${plural(found.length, "ticket")}</h2>`}
    <${Rows} className="tree" items=${found.reverse()} height=${38} row=${row} />
  </section>`;
}

function Conversations({ query }) {
  const [asked, setAsked] = useState("");
  const [open, setOpen] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setAsked(query), PAUSE);
    return () => clearTimeout(timer);
  }, [query]);
  const { data, error } = useRead(asked && "/v1/conversations/search", { query: asked, most: 20, timeout: 2 });
  const hits = data?.hits ?? [];
  const reading = data?.index.reading && `reading: ${bytes(data.index.bytes_done)} of ${bytes(data.index.bytes)}`;
  const toggle = (id) => setOpen(open === id ? "" : id);
  return html`
    <h2>${plural(hits.length, "conversation")} <${Hint} of=${reading} /></h2>
    <${Trouble} error=${error} />
    ${hits.map((hit, n) => html`<${Hit} key=${n} hit=${hit} open=${open === hit.conversation.id} toggle=${toggle} />`)}
  `;
}

function Hit({ hit: { conversation: one, at, excerpt, found }, open, toggle }) {
  return html`<article class="receipt">
    <p class="path">
      ${one.program} <b>${one.title}</b> <${Hint} of=${`${one.project}, ${day(at)}`} /> ${""}
      <${TicketLink} id=${one.ticket} />${""}<button onClick=${() => toggle(one.id)}>Read</button>
    </p>
    <p class="about">${marked(excerpt, found)}</p>
    ${open && html`<${Reading} id=${one.id} />`}
  </article>`;
}

// The excerpt with the words that were searched for.
function marked(text, found) {
  const parts = [];
  let at = 0;
  for (const [start, end] of found) {
    parts.push(text.slice(at, start), html`<mark>${text.slice(start, end)}</mark>`);
    at = end;
  }
  return [...parts, text.slice(at)];
}

function Reading({ id }) {
  const { data, error } = useRead("/v1/conversations/export", { id, format: "md" });
  return html`
    <${Trouble} error=${error} />${data && html`<${Output} kind="" label="The conversation" of=${plain(data.text)} />`}
  `;
}
