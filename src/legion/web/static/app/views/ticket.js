// One ticket: what it is about, what can be done about it, and its parts as tabs.
import { html, useRef, useState } from "../lib.js";
import { Acts, Empty, Flag, Odd, Opener, Say, Since, State, Tabs, Trouble } from "../parts.js";
import { board, mayAct, useRead } from "../state.js";
import { post } from "../api.js";
import { amount, spentOf, dollars } from "../format.js";
import { About, Change, History, Live, Receipts, Reviews } from "./tabs.js";
import { Question } from "./inbox.js";
import { TicketTerminal } from "./terminal.js";

const TABS = [
  ["live", "Live"],
  ["diff", "Diff"],
  ["terminal", "Terminal"],
  ["receipts", "Receipts"],
  ["review", "Review"],
  ["history", "History"],
  ["about", "About"],
];
const PARTS = {
  live: Live,
  diff: Change,
  terminal: TicketTerminal,
  receipts: Receipts,
  review: Reviews,
  history: History,
  about: About,
};

export function Ticket({ id, tab: wanted }) {
  const first = useRef("");
  const matters = (one) => one.ticket === id || one.kind.startsWith("question.");
  const { data: page, error } = useRead(`/v1/tickets/${id}`, {}, matters);
  if (!page) return html`<${Trouble} error=${error} />${!error && html`<${Empty}>Reading ticket ${id}</${Empty}>`}`;
  const one = page.ticket;
  first.current ||= firstTab(page);
  const tab = wanted ?? first.current;
  return html`<article class="ticket ${tab === "diff" ? "reads" : ""}" data-what=${`#${id} ${one.title}`}>
    <header><${Head} page=${page} one=${one} /></header>
    <${Trouble} error=${error} />
    ${page.questions.map((question) => html`<${Question} one=${question} key=${question.id} />`)}
    ${tab !== "diff" && html`<${Odd} in=${page.hidden_characters.map((other) => other.code)} where="Its change" />`}
    <${Decide} page=${page} tab=${tab} /><${Tabs} names=${TABS} now=${tab} base=${`#/ticket/${id}`} />
    <${PARTS[tab] ?? Live} page=${page} id=${id} />
  </article>`;
}

function Head({ page, one }) {
  const limit = page.budget ? ` of ${dollars(page.budget)}` : "";
  const cost = page.usage && `${spentOf(page.usage)}${limit}, ${amount(page.usage.output)} tokens out`;
  const since = !one.reason && one.doing_since && html`, <${Since} at=${one.doing_since} />`;
  return html`
    <p class="path">
      <a href="#/board">Board</a> / <span class="number">#${one.id}</span> <${State} of=${one.state} /> ${""}
      <${Flag} of=${one.attempt > 1 && `attempt ${one.attempt} of ${one.max_attempts}`} /> ${""}
      ${one.epic && html`<a class="flag" href=${`#/epic/${encodeURIComponent(one.epic)}`}>${one.epic}</a>`} <${Flag}
        of=${cost} />
    </p>
    <h1>${one.title}</h1>
    ${!page.questions.length && html`<p class="about">${one.reason || one.doing}${since}</p>`}
    ${page.progress && html`<p class="about">Its agent reports: ${page.progress}</p>`}
  `;
}

const FEEDBACK = {
  retry: "What should it do differently? (may stay empty)",
  bounce: "What is wrong with its change?",
  reject: "What should its plan do differently?",
};
const DECIDED = { land: "land", bounce: "back", stop: "stop", retry: "retry" };
const CHECKS = "Run all checks on the code that it landed? A checkpoint does it.";

// The acts of a ticket: the daemon says which are possible. What an open question decides is decided there.
function Decide({ page, tab }) {
  const one = page.ticket;
  const [saying, setSaying] = useState("");
  if (!mayAct.value) return null;
  const asked = new Set(page.questions.flatMap((one) => (one.kind === "change" ? ["land", "back"] : one.choices)));
  const offers = one.offers.filter((name) => !asked.has(DECIDED[name]));
  const may = (name) => offers.includes(name);
  const at = (verb) => `/v1/tickets/${one.id}/${verb}`;
  const go = (verb, body = {}) => post(at(verb), body, { waits: true });
  const verdict = (more) => post("/v1/agents/verdict", { agent: String(one.id), ...more });
  const decides = page.planning === "proposed" && !page.questions.some((question) => question.kind === "plan");
  const gate = may("land") && one.state === "parked";
  const say = (text) => (saying === "reject" ? verdict({ approve: false, why: text }) : go(saying, { feedback: text }));
  const opener = (of, words, kind, keys) => {
    const toggle = () => setSaying(saying === of ? "" : of);
    return html`<${Opener} key=${of} open=${saying === of} toggle=${toggle} kind=${kind} keys=${keys}>
      ${words}
    </${Opener}>`;
  };
  const split = async () => {
    const made = await go("split");
    location.hash = `#/plan/${made.plan.id}`;
    return { message: `${made.plan.id}: a planner splits it.` };
  };
  const drop = async () => {
    const done = await go("drop");
    location.hash = "#/board";
    return done;
  };
  const soon = gate ? undefined : "Let it land as soon as its checks and reviews pass?";
  const resumes = may("resume_ticket") && !page.questions.length && !gate;
  const first = may("land") &&
    one.state !== "landing" && { words: "Land it", keys: "m", kind: gate ? "primary" : "", ask: soon, at: at("land") };
  const acts = [
    resumes && { words: "Resume", keys: "r", kind: "primary", at: at("resume") },
    decides && { words: "Approve its plan", kind: "primary", run: () => verdict({ approve: true }) },
    { offer: "interrupt", words: "Interrupt", keys: "x", ask: "Interrupt its agent?", at: at("interrupt") },
    { offer: "pause_ticket", words: "Pause", keys: "c", at: at("pause") },
    { offer: "stop", words: "Stop", keys: "s", ask: "Stop it? Its work is kept.", at: at("stop") },
    { offer: "review", words: "Request a review", keys: "v", at: at("review") },
    may("undo") &&
      !page.undone_by.length && { words: "Undo", keys: "u", ask: "Revert it by a new ticket?", at: at("undo") },
    { offer: "undo", words: "Run all checks", keys: "B", ask: CHECKS, run: () => runChecks(one) },
    { offer: "split", words: "Split", ask: "Let a planner split it?", run: split },
    { offer: "drop", words: "Drop", keys: "d", ask: "Remove it from the board?", run: drop },
  ];
  const openers = html`
    ${may("bounce") && opener("bounce", "Send back", "", tab === "diff" ? "b" : undefined)}
    ${may("retry") && opener("retry", "Retry", "primary", "r")}${decides && opener("reject", "Reject its plan")}
  `;
  return html`<${Acts} of=${[first, openers, ...acts]} offers=${offers}>
    <a class="button" href=${`#/actions/${one.id}`}>More</a>
    ${saying && html`<${Say} key=${saying} label=${FEEDBACK[saying]} close=${() => setSaying("")} send=${say} />`}
  </${Acts}>`;
}

// What a person looks at first: the failure, the change that waits for them, else the agent at work.
function firstTab({ ticket, receipts, change }) {
  if (ticket.state === "failed") return receipts.some((one) => one.verdict !== "green") ? "receipts" : "history";
  return ticket.state === "parked" && change ? "diff" : "live";
}

async function runChecks(one) {
  const lines = board.value.projects;
  const cwd = (lines.find((line) => line.name === one.project) ?? lines[0]).root;
  const wanted = { title: `Checks after #${one.id}`, after: [one.id], checkpoint: true };
  const made = await post("/v1/tickets", { cwd, tickets: [wanted] });
  location.hash = `#/ticket/${made.ids[0]}/receipts`;
  return { message: `Ticket ${made.ids[0]} runs the checks.`, notes: made.notes };
}
