// The merge queue as a picture: what waits, what is tested together, what landed.
import { html } from "../lib.js";
import { Act, Empty, State, Trouble } from "../parts.js";
import { board, project, useLive } from "../state.js";
import { get, post } from "../api.js";
import { ago, clock } from "../format.js";

const SHOWN = /^(landing|target|check|person|proof)\./;

export function Queue() {
  const status = board.value;
  const { data, error } = useLive(() => get("/v1/history", { cwd: project.value, last: 400 }), [project.value], (one) => SHOWN.test(one.kind));
  if (!status) return html`<${Empty}>Reading the queue</${Empty}>`;
  const waiting = status.tickets.filter((one) => one.state === "landing").sort((a, b) => place(a) - place(b));
  const tested = status.tickets.filter((one) => one.state === "checking" || one.state === "reviewing");
  const landed = status.tickets.filter((one) => one.state === "done").sort((a, b) => b.moved_at - a.moved_at).slice(0, 12);
  const lines = status.project ? [status.project] : status.projects;
  return html`<section>
    <div class="train" aria-label="The merge queue, from the right into the target">
      <section class="stop"><h2>Before the queue <span class="count">${tested.length}</span></h2>${tested.map(wagon)}${!tested.length && html`<p class="hint">nothing is checked or reviewed</p>`}</section>
      <section class="stop"><h2>Queue <span class="count">${waiting.length}</span></h2>${waiting.map(wagon)}${!waiting.length && html`<p class="hint">nothing waits to land</p>`}</section>
      <section class="stop target">${lines.map((one) => html`<h2 key=${one.root}>${one.branch} of ${one.name} <span class="state ${{ green: "good", red: "bad" }[one.baseline] ?? "quiet"}">${one.baseline}</span></h2>`)}
        ${landed.map(wagon)}</section>
    </div>
    <h2>What happened</h2><${Trouble} error=${error} />
    ${data && !data.lines.some((one) => SHOWN.test(one.kind)) && html`<${Empty}>Nothing was checked or landed yet.</${Empty}>`}
    <ol class="history">${(data?.lines ?? []).filter((one) => SHOWN.test(one.kind)).slice(-60).reverse().map((one) => html`<li key=${`${one.source}${one.n}`}>
      <time>${clock(one.at)}</time><span>${one.ticket && html`<a href=${`#/ticket/${one.ticket}`}>#${one.ticket}</a> `}${one.words}</span>${one.rule && html`<span class="hint" title=${one.why}>${one.rule}</span>`}</li>`)}</ol>
  </section>`;
}

const place = (one) => Number(/place (\d+)/.exec(one.doing)?.[1] ?? 9999);

const wagon = (one) => html`<a class="wagon" key=${one.id} href=${`#/ticket/${one.id}`}><span class="number">#${one.id}</span> <${State} of=${one.state} />
  <span class="title">${one.title}</span><span class="about">${one.state === "done" ? `${ago(one.moved_at)} ago` : one.doing}</span></a>`;
