// All agents at work: what each does now, and its last lines.
import { html, useEffect, useState } from "../lib.js";
import { Empty, Line, useNow } from "../parts.js";
import { board, project } from "../state.js";
import { post } from "../api.js";
import { followAll } from "../output.js";
import { amount, dollars, duration, plain } from "../format.js";

const LINES = 8;

export function Squad() {
  const [work, setWork] = useState(null);
  const now = useNow();
  useEffect(() => followAll(project.value, (running, texts) => setWork({ running, texts: new Map(texts) })), [project.value]);
  if (!work) return html`<${Empty}>Reading what the agents do</${Empty}>`;
  if (!work.running.length) return html`<${Empty}>No agent is at work. <a href="#/new">Write a ticket</a> or <a href="#/plans">plan a goal</a>.</${Empty}>`;
  const known = new Map((board.value?.tickets ?? []).map((one) => [one.id, one]));
  return html`<section class="squad">${work.running.map((one) => html`<${AtWork} key=${one.run} one=${one} now=${now} ticket=${known.get(one.ticket)} text=${work.texts.get(one.run) ?? ""} />`)}</section>`;
}

function AtWork({ one, now, ticket, text }) {
  const title = ticket?.title;
  const lines = plain(text).trimEnd().split("\n").slice(-LINES).join("\n");
  const send = (message) => (one.agent ? post("/v1/agents/tell", { to: one.agent, text: message }, { waits: true }) : post(`/v1/tickets/${one.ticket}/tell`, { text: message }, { waits: true }));
  return html`<article class="at-work" tabindex="-1" data-ticket=${one.ticket ?? undefined} data-what=${`${one.ticket ? `#${one.ticket}` : one.name} ${title ?? ""}`}>
    <header>${one.ticket ? html`<a href=${`#/ticket/${one.ticket}`}><span class="number">#${one.ticket}</span> ${title ?? ""}</a>` : html`<a href=${`#/agent/${encodeURIComponent(one.agent)}`}>${one.name || one.agent}</a>`}
      ${one.ticket && one.name && html`<span class="flag">${one.name}</span>`}<span class="age">${duration(now - one.started_at)}${one.usage ? `, ${amount(one.usage.output)} tokens, ${dollars(one.usage.usd)}` : ""}</span></header>
    <p class="about">${one.activity}${one.activity_at ? ` (${duration(now - one.activity_at)})` : ""}</p>
    <pre class="output tail" ref=${(box) => { if (box) box.scrollTop = box.scrollHeight; }} tabindex="0" aria-label=${`Last output of ${one.ticket ? `ticket ${one.ticket}` : one.name}`}>${lines || "No output yet."}</pre>
    ${(one.agent || ticket?.offers.includes("tell")) && html`<${Line} keys="i" label="Send it a message" to=${one.ticket ?? one.agent} send=${send} />`}</article>`;
}
