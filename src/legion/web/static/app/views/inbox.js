// All that waits for the person, most urgent first, with buttons for a thumb.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../lib.js";
import { useDraft } from "../writing.js";
import { act, inboxRead, mayAct, questions, reread, toast, useRead, waiting } from "../state.js";
import { Act, Acts, Empty, Facts, Line, Output, TicketLink, confirmed, useNow } from "../parts.js";
import { post } from "../api.js";
import { ago, clock, plural, until } from "../format.js";
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
  const things = waiting.value;
  const asked = new Map(questions.value.map((one) => [one.id, one]));
  const shown = useRef(null);
  useLayoutEffect(() => {
    const ids = things.map((one) => one.kind + one.id).join();
    if (shown.current !== null && shown.current !== ids) movedAt = Date.now();
    shown.current = ids;
  }, [things]);
  const none = inboxRead.value ? "Nothing waits for you." : "Not read yet: what waits for you is not known.";
  const toAll = ([kind, same]) => {
    const ask = `Answer ${same.length} questions with ${same[0].choices[0]}?`;
    const words = `${same[0].choices[0]} to all ${same.length} of the kind ${kind}`;
    return html`<p key=${kind}><${Act} keys="A" ask=${ask} run=${() => answerAll(same)}>${words}</${Act}></p>`;
  };
  return html`<section class="inbox">
    ${!things.length && html`<${Empty}>${none} <a href="#/board">Back to the board</a></${Empty}>`}
    ${alike(questions.value).map(toAll)}
    ${things.map((one) =>
      one.kind === "question"
        ? html`<${Question} one=${asked.get(one.id)} key=${one.id} holds=${one.holds_up} glance />`
        : html`<${Thing} one=${one} key=${one.kind + one.id + one.root} />`,
    )}
    <${Answered} />
  </section>`;
}

const Holds = ({ up }) => up > 1 && html`<span class="flag bad">holds up ${plural(up, "ticket")}</span>`;

// What decides each: the operation that the daemon offers, its button, and what is asked before.
const actsOf = ({ id, root, title, facts }) => {
  const [plan, ticket] = [`/v1/plans/${id}`, `/v1/tickets/${id}`];
  const anyway = Boolean(facts.findings);
  const dispatched = `Approve P${id}${anyway ? " with its findings left" : ""}? Its tickets are dispatched at once.`;
  return [
    {
      offer: "approve_plan",
      words: "Approve",
      kind: "primary",
      keys: "y",
      ask: dispatched,
      at: `${plan}/approve`,
      body: { anyway },
    },
    { offer: "retry_plan", words: "Plan again", kind: "primary", keys: "y", at: `${plan}/retry` },
    { offer: "drop_plan", words: "Drop", ask: "Drop it? Approved tickets stay.", at: `${plan}/drop` },
    { offer: "retry", words: "Try again", kind: "primary", keys: "y r", ask: "Try it again?", at: `${ticket}/retry` },
    { offer: "drop", words: "Remove", keys: "n", ask: "Remove it from the board?", at: `${ticket}/drop` },
    {
      offer: "collect",
      words: "Collect",
      kind: "primary",
      keys: "y",
      ask: `Bring what landed into ${title} of your repository?`,
      at: "/v1/project/collect",
      body: { cwd: root },
    },
  ];
};

// Anything but a question.
function Thing({ one }) {
  const at = { plan: `#/plan/${one.id}`, failed: `#/ticket/${one.id}` }[one.kind];
  const name = { plan: `P${one.id} `, failed: `#${one.id} ` }[one.kind] ?? "";
  const { output, ...facts } = one.facts;
  const reject = async (why) => (await post(`/v1/plans/${one.id}/reject`, { why }, { waits: true }), reread());
  return html`<article class="question" tabindex="-1" data-what=${`${name}${one.title}: ${one.words}`}>
    <header>
      <span class="flag ${one.kind === "failed" ? "bad" : ""}">${one.kind}</span>
      ${at ? html`<a data-keys="o" href=${at}>${name}${one.title}</a>` : html`<b>${one.project}</b>`}
      ${at && html`<span class="age">${ago(one.since)} ago</span>`}<${Holds} up=${one.holds_up} />
    </header>
    <${Prose} className="text" text=${one.words} /><${Facts} of=${facts} />
    ${output && html`<${Output} of=${output} label="End of what the check said" />`}
    <${Acts} of=${actsOf(one)} offers=${one.offers}>
      ${
        one.offers.includes("reject_plan") &&
        html`<${Line} label="What should be different?" verb="Send it back" to=${name} keys="n" send=${reject} />`
      }
    </${Acts}>
  </article>`;
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

export function Question({ one, glance = false, holds = 0 }) {
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
      <${Holds} up=${holds} />
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
