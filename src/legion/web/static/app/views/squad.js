// All agents at work: what each does now, and its last lines.
import { html, useEffect, useState } from "../lib.js";
import { Empty, Flag, Line, useNow } from "../parts.js";
import { board, project } from "../state.js";
import { post } from "../api.js";
import { followAll } from "../output.js";
import { amount, spentOf, duration, lastLines } from "../format.js";

const NONE = html`No agent is at work. <a href="#/new">Write a ticket</a> or <a href="#/plans">plan a goal</a>.`;

export function Squad() {
  const [work, setWork] = useState(null);
  const now = useNow();
  const show = (running, texts) => setWork({ running, texts: new Map(texts) });
  useEffect(() => followAll(project.value, show), [project.value]);
  if (!work) return html`<${Empty}>Reading what the agents do</${Empty}>`;
  if (!work.running.length) return html`<${Empty}>${NONE}</${Empty}>`;
  const known = new Map((board.value?.tickets ?? []).map((one) => [one.id, one]));
  const box = (one) =>
    html`<${AtWork} key=${one.run} one=${one} now=${now} ticket=${known.get(one.ticket)}
      text=${work.texts.get(one.run)} />`;
  return html`<section class="squad">${work.running.map(box)}</section>`;
}

function AtWork({ one, now, ticket, text }) {
  const title = ticket?.title ?? "";
  const name = one.ticket ? `ticket ${one.ticket}` : one.name;
  const send = (message) =>
    one.agent
      ? post("/v1/agents/tell", { to: one.agent, text: message }, { waits: true })
      : post(`/v1/tickets/${one.ticket}/tell`, { text: message }, { waits: true });
  const end = (box) => {
    if (box) box.scrollTop = box.scrollHeight;
  };
  const link = one.ticket
    ? html`<a href=${`#/ticket/${one.ticket}`}><span class="number">#${one.ticket}</span> ${title}</a>`
    : html`<a href=${`#/agent/${encodeURIComponent(one.agent)}`}>${one.name || one.agent}</a>`;
  const cost = one.usage ? `, ${amount(one.usage.output)} tokens, ${spentOf(one.usage)}` : "";
  const since = one.activity_at ? ` (${duration(now - one.activity_at)})` : "";
  const tells = one.agent || ticket?.offers.includes("tell");
  return html`<article class="at-work" tabindex="-1" data-ticket=${one.ticket ?? undefined}
    data-what=${`${one.ticket ? `#${one.ticket}` : one.name} ${title}`}>
    <header>
      ${link}<${Flag} of=${one.ticket && one.name} /><span class="age">${duration(now - one.started_at)}${cost}</span>
    </header>
    <p class="about">${one.activity}${since}</p>
    <pre role="region" class="output tail" ref=${end} tabindex="0" aria-label=${`Last output of ${name}`}>
      ${lastLines(text, 8) || "No output yet."}
    </pre>
    ${tells && html`<${Line} keys="i" label="Send it a message" to=${one.ticket ?? one.agent} send=${send} />`}
  </article>`;
}
