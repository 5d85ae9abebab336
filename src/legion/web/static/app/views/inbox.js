// Questions that wait for the person, with buttons for a thumb.
import { html, useState } from "../lib.js";
import { act, mayAct, questions, reread } from "../state.js";
import { Empty, Facts, useNow } from "../parts.js";
import { post } from "../api.js";
import { ago, until } from "../format.js";

const POSITIVE = new Set(["yes", "approve", "land", "more", "retry", "always"]);

export function Inbox() {
  useNow(5);
  const waiting = questions.value;
  if (!waiting.length) return html`<${Empty}>Nothing waits for you.</${Empty}>`;
  return html`<section class="inbox">${waiting.map((one) => html`<${Question} one=${one} key=${one.id} />`)}</section>`;
}

export function Question({ one }) {
  const [why, setWhy] = useState("");
  const [busy, setBusy] = useState(false);
  const answer = async (choice) => {
    setBusy(true);
    // Another device may have been faster: the daemon says so, and nothing happens twice.
    await act(() => post(`/v1/questions/${one.id}/answer`, { choice, why }));
    reread();
    setBusy(false);
  };
  const from = one.name || one.agent;
  return html`<article class="question">
    <header><span class="flag">${one.kind}</span>
      ${one.ticket && html`<a href=${`#/ticket/${one.ticket}`}>#${one.ticket} ${one.title}</a>`}
      ${from && html`<span>from ${from}</span>`}<span class="age">${ago(one.asked_at)} ago</span></header>
    <p class="text">${one.words}</p>
    <${Facts} of=${one.facts} />
    ${mayAct.value && html`<div class="answers">
      <textarea aria-label="Answer or reason" rows="2" placeholder=${one.choices.length ? "A reason, if you want to give one" : "Your answer"} value=${why}
        onInput=${(event) => setWhy(event.target.value)}></textarea>
      <div class="thumbs">${one.choices.map((choice) => html`<button key=${choice} disabled=${busy} class=${POSITIVE.has(choice) ? "primary" : ""}
        onClick=${() => answer(choice)}>${choice}</button>`)}
      ${!one.choices.length && html`<button class="primary" disabled=${busy || !why.trim()} onClick=${() => answer(why.trim())}>Answer</button>`}</div></div>`}
    <p class="hint">Unanswered, it is settled ${one.default ? html`with <b>${one.default}</b>` : ""} in ${until(one.deadline)}.</p>
  </article>`;
}
