// Questions that wait for the person, with buttons for a thumb.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../lib.js";
import { useDraft } from "../writing.js";
import { act, inboxRead, mayAct, questions, reread, toast, useRead } from "../state.js";
import { Act, Empty, Facts, TicketLink, confirmed, useNow } from "../parts.js";
import { post } from "../api.js";
import { ago, clock, until } from "../format.js";
import { Prose } from "../prose.js";

const POSITIVE = new Set(["yes", "approve", "land", "more", "retry"]);
const WORDS = { land: "Land it", back: "Send back", stop: "Stop it", always: "Always…" };
const TICKET_KEYS = { land: "m", back: "b", stop: "s" };
const WITH_CHANGE = new Set(["gate", "change"]);
const MOST_ANSWERED = 8;
const A_MOMENT = 600; // Milliseconds in which a person presses what they saw before.
let movedAt = 0; // When a question came or went, and the others changed their place.

export function Inbox() {
  useNow(5);
  const waiting = questions.value;
  const shown = useRef(null);
  useLayoutEffect(() => {
    const ids = waiting.map((one) => one.id).join();
    if (shown.current !== null && shown.current !== ids) movedAt = Date.now();
    shown.current = ids;
  }, [waiting]);
  const none = inboxRead.value ? "Nothing waits for you." : "Not read yet: what waits for you is not known.";
  const toAll = ([kind, same]) => {
    const ask = `Answer ${same.length} questions with ${same[0].choices[0]}?`;
    const words = `${same[0].choices[0]} to all ${same.length} of the kind ${kind}`;
    return html`<p key=${kind}><${Act} keys="A" ask=${ask} run=${() => answerAll(same)}>${words}</${Act}></p>`;
  };
  return html`<section class="inbox">
    ${!waiting.length && html`<${Empty}>${none} <a href="#/board">Back to the board</a></${Empty}>`}
    ${alike(waiting).map(toAll)}${waiting.map((one) => html`<${Question} one=${one} key=${one.id} glance />`)}
    <${Answered} />
  </section>`;
}

// Kinds of which several questions have the same first choice.
function alike(waiting) {
  const kinds = new Map();
  for (const one of waiting) if (one.choices.length) kinds.set(one.kind, [...(kinds.get(one.kind) ?? []), one]);
  return [...kinds].filter(([, same]) => same.length > 1 && same.every((one) => one.choices[0] === same[0].choices[0]));
}

async function answerAll(same) {
  for (const one of same) await post(`/v1/questions/${one.id}/answer`, { choice: one.choices[0], why: "" });
  reread();
  return { message: `${same.length} questions are answered.` };
}

function Answered() {
  const { data } = useRead("/v1/history", { last: 300 }, /^question\.settled$/);
  const of = (kind) => (data?.lines ?? []).filter((one) => one.kind === `question.${kind}`);
  const settled = of("settled").slice(-MOST_ANSWERED).reverse();
  const asked = new Map(of("asked").map((one) => [one.data.question, one.data.words]));
  const line = (one) => html`<li key=${one.n}>
    <time>${clock(one.at)}</time>
    <span>
      <${TicketLink} id=${one.ticket} /> ${one.words} <span class="about">${asked.get(one.data.question)}</span>
    </span>
  </li>`;
  return settled.length > 0 && html`<h2>Last answers</h2><ol class="history">${settled.map(line)}</ol>`;
}

// The beginning of the change that the question is about.
function Glance({ ticket }) {
  const [loaded, setLoaded] = useState(null);
  useEffect(() => {
    import("./diff.js").then((module) => setLoaded({ Part: module.Glance }));
  }, []);
  return html`<div class="glance">${loaded && html`<${loaded.Part} ticket=${ticket} />`}</div>`;
}

// What is asked before an answer is sent; nothing, where it is sent at once.
function secondThought(choice, why, rule) {
  // This yes is for every agent, and stays.
  if (choice === "always") return `From now on every agent may use this without asking: ${rule}\nSave this rule?`;
  return choice === "back" && !why.trim() ? "Send it back without a word about what is wrong?" : "";
}

export function Question({ one, glance = false }) {
  const [why, setWhy, sent] = useDraft(`why ${one.id}`);
  const [busy, setBusy] = useState(false);
  const box = useRef(null);
  const pressed = useRef(false);
  const answer = async (choice) => {
    if (Date.now() - movedAt < A_MOMENT) {
      toast("The questions have just changed their place: press again.");
      return;
    }
    const asks = secondThought(choice, why, one.facts.rule);
    if (asks && choice === "back" && !pressed.current) {
      pressed.current = true;
      box.current.focus();
      return;
    }
    if (asks && !(await confirmed(asks))) return;
    setBusy(true);
    // Another device may have been faster: the daemon says so, and nothing happens twice.
    if (await act(() => post(`/v1/questions/${one.id}/answer`, { choice, why }))) sent(why);
    reread();
    setBusy(false);
  };
  const from = one.name || one.agent;
  const about = `${one.ticket ? `#${one.ticket} ${one.title}: ` : ""}${one.words}`;
  return html`<article class="question" tabindex="-1" data-what=${about}>
    <header>
      <span class="flag">${one.kind}</span>
      ${one.ticket && html`<a data-keys="o" href=${`#/ticket/${one.ticket}`}>#${one.ticket} ${one.title}</a>`}
      ${from && html`<span>from ${from}</span>`}<span class="age">${ago(one.asked_at)} ago</span>
    </header>
    <${Prose} className="text" text=${one.words} /><${Facts} of=${one.facts} />
    ${glance && one.ticket && WITH_CHANGE.has(one.kind) && html`<${Glance} ticket=${one.ticket} />`}
    ${mayAct.value && html`<${Answers} ...${{ one, why, setWhy, busy, answer, box }} />`}
    <p class="hint">
      Unanswered, it is settled ${one.default ? html`with <b>${one.default}</b>` : ""} in ${until(one.deadline)}.
    </p>
  </article>`;
}

function Answers({ one, why, setWhy, busy, answer, box }) {
  const hint = one.choices.length ? "A reason, if you want to give one" : "Your answer";
  const button = (choice, place) => {
    const word = WORDS[choice] ?? choice;
    return html`<button key=${choice} class=${POSITIVE.has(choice) ? "primary" : ""} disabled=${busy}
      data-question=${`Answer “${word}”?`} data-keys=${`${["y a", "n r"][place] ?? ""} ${TICKET_KEYS[choice] ?? ""}`}
      onClick=${() => answer(choice)}>
      ${word}
    </button>`;
  };
  const words = html`<button class="primary" disabled=${busy || !why.trim()} onClick=${() => answer(why.trim())}>
    Answer
  </button>`;
  return html`<div class="answers">
    <textarea ref=${box} data-keys="e" aria-label="Answer or reason" rows="2" placeholder=${hint} value=${why}
      onInput=${(event) => setWhy(event.target.value)}></textarea>
    <div class="thumbs">${one.choices.length ? one.choices.map(button) : words}</div>
  </div>`;
}
