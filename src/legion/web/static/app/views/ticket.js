// One ticket: live output, change, receipts, reviews, history; and what can be done about it.
import { html, useEffect, useRef, useState } from "../lib.js";
import { Act, Empty, Facts, Line, Odd, Say, Since, State, Tabs, Trouble, copy } from "../parts.js";
import { act, board, mayAct, toast, useLive } from "../state.js";
import { followLog } from "../output.js";
import { get, post } from "../api.js";
import { amount, clock, day, dollars, duration, plain, plural } from "../format.js";
import { DiffView } from "./diff.js";
import { Question } from "./inbox.js";
import { TicketTerminal } from "./terminal.js";
import { Prose } from "../prose.js";

const TABS = [["live", "Live"], ["diff", "Diff"], ["terminal", "Terminal"], ["receipts", "Receipts"], ["review", "Review"], ["history", "History"], ["about", "About"]];

export function Ticket({ id, tab: wanted }) {
  const first = useRef("");
  const { data: page, error } = useLive(() => get(`/v1/tickets/${id}`), [id], (one) => one.ticket === id || one.kind.startsWith("question."));
  if (!page) return html`<${Trouble} error=${error} />${!error && html`<${Empty}>Reading ticket ${id}</${Empty}>`}`;
  const one = page.ticket;
  first.current ||= firstTab(page);
  const tab = wanted ?? first.current;
  const Part = { live: Live, diff: Change, terminal: TicketTerminal, receipts: Receipts, review: Reviews, history: History, about: About }[tab] ?? Live;
  return html`<article class="ticket ${tab === "diff" ? "reads" : ""}" data-what=${`#${id} ${one.title}`}>
    <header><p class="path"><a href="#/board">Board</a> / <span class="number">#${id}</span> <${State} of=${one.state} />
      ${one.attempt > 1 && html`<span class="flag">attempt ${one.attempt} of ${one.max_attempts}</span>`}
      ${one.epic && html`<a class="flag" href=${`#/epic/${encodeURIComponent(one.epic)}`}>${one.epic}</a>`}
      ${page.usage && html`<span class="flag">${dollars(page.usage.usd)}${page.budget ? ` of ${dollars(page.budget)}` : ""}, ${amount(page.usage.output)} tokens out</span>`}</p>
      <h1>${one.title}</h1>
      ${!page.questions.length && html`<p class="about">${one.reason || one.doing}${!one.reason && one.doing_since && html`, <${Since} at=${one.doing_since} />`}</p>`}${page.progress && html`<p class="about">Its agent reports: ${page.progress}</p>`}</header>
    <${Trouble} error=${error} />
    ${page.questions.map((question) => html`<${Question} one=${question} key=${question.id} />`)}
    ${tab !== "diff" && html`<${Odd} in=${page.hidden_characters.map((other) => other.code)} where="Its change" />`}
    <${Actions} page=${page} tab=${tab} />
    <${Tabs} names=${TABS} now=${tab} base=${`#/ticket/${id}`} />
    <${Part} page=${page} id=${id} />
  </article>`;
}

// The acts of a ticket: the daemon says which are possible. What an open question decides is decided there.
function Actions({ page, tab }) {
  const one = page.ticket;
  const go = (verb, body = {}) => () => post(`/v1/tickets/${one.id}/${verb}`, body, { waits: true });
  const [saying, setSaying] = useState("");
  if (!mayAct.value) return null;
  const asked = new Set(page.questions.flatMap((question) => question.choices));
  const decided = { land: "land", bounce: "back", stop: "stop", retry: "retry" };
  const may = (verb) => one.offers.includes(verb) && !asked.has(decided[verb]);
  const waits = page.questions.length > 0;
  const decides = page.planning === "proposed" && !page.questions.some((question) => question.kind === "plan");
  const feedback = { retry: "What should it do differently? (may stay empty)", bounce: "What is wrong with its change?", reject: "What should its plan do differently?" };
  const reject = (why) => post("/v1/agents/verdict", { agent: String(one.id), approve: false, why });
  const say = (text) => (saying === "reject" ? reject(text) : go(saying, { feedback: text })());
  const opener = (of, words, kind, keys) => html`<button class=${kind} data-keys=${keys} aria-expanded=${saying === of}
    onClick=${() => setSaying(saying === of ? "" : of)}>${words}</button>`;
  const split = async () => {
    const made = await go("split")();
    location.hash = `#/plan/${made.plan.id}`;
    return { message: `${made.plan.id}: a planner splits it.` };
  };
  const drop = async () => { const done = await go("drop")(); location.hash = "#/board"; return done; };
  const gate = may("land") && one.state === "parked";
  const checks = "Run all checks on the code that it landed? A checkpoint does it.";
  return html`<div class="actions">
    ${may("land") && one.state !== "landing" && html`<${Act} keys="m" kind=${gate ? "primary" : ""} run=${go("land")}
      ask=${gate ? undefined : "Let it land as soon as its checks and reviews pass?"}>Land it</${Act}>`}
    ${may("bounce") && opener("bounce", "Send back", "", tab === "diff" ? "b" : undefined)}
    ${may("retry") && opener("retry", "Retry", "primary", "r")}
    ${may("resume_ticket") && !waits && !gate && html`<${Act} keys="r" kind="primary" run=${go("resume")}>Resume</${Act}>`}
    ${decides && html`<${Act} kind="primary" run=${() => post("/v1/agents/verdict", { agent: String(one.id), approve: true })}>Approve its plan</${Act}>`}
    ${decides && opener("reject", "Reject its plan")}
    ${may("interrupt") && html`<${Act} keys="x" ask="Interrupt its agent?" run=${go("interrupt")}>Interrupt</${Act}>`}
    ${may("pause_ticket") && html`<${Act} keys="c" run=${go("pause")}>Pause</${Act}>`}
    ${may("stop") && html`<${Act} keys="s" ask="Stop it? Its work is kept." run=${go("stop")}>Stop</${Act}>`}
    ${may("review") && html`<${Act} keys="v" run=${go("review")}>Request a review</${Act}>`}
    ${may("undo") && !page.undone_by.length && html`<${Act} keys="u" ask="Revert it by a new ticket?" run=${go("undo")}>Undo</${Act}>`}
    ${may("undo") && html`<${Act} keys="B" ask=${checks} run=${() => runChecks(one)}>Run all checks</${Act}>`}
    ${may("stop") && one.state !== "landing" && html`<${Act} ask="Let a planner split it?" run=${split}>Split</${Act}>`}
    ${may("drop") && html`<${Act} keys="d" ask="Remove it from the board?" run=${drop}>Drop</${Act}>`}
    <a class="button" href=${`#/actions/${one.id}`}>More</a>
    ${saying && html`<${Say} key=${saying} label=${feedback[saying]} close=${() => setSaying("")} send=${say} />`}
  </div>`;
}

// What a person looks at first: the failure, the change that waits for them, else the agent at work.
function firstTab({ ticket, receipts, change }) {
  if (ticket.state === "failed") return receipts.some((one) => one.verdict !== "green") ? "receipts" : "history";
  return ticket.state === "parked" && change ? "diff" : "live";
}

async function runChecks(one) {
  const cwd = board.value.projects.find((line) => line.name === one.project)?.root ?? board.value.projects[0].root;
  const made = await post("/v1/tickets", { cwd, tickets: [{ title: `Checks after #${one.id}`, after: [one.id], checkpoint: true }] });
  location.hash = `#/ticket/${made.ids[0]}/receipts`;
  return { message: `Ticket ${made.ids[0]} runs the checks.`, notes: made.notes };
}

function Live({ page, id }) {
  const [lines, setLines] = useState("");
  const [run, setRun] = useState(null);
  const box = useRef(null);
  const stays = useRef(true);
  useEffect(() => {
    setLines("");
    let known = null;
    return followLog(id, async (seen) => {
      let piece = await get(`/v1/tickets/${id}/log`, { offset: seen });
      if (piece.run !== known) {
        known = piece.run;
        if (seen > 0) piece = await get(`/v1/tickets/${id}/log`, { offset: 0 });
        setLines("");
      }
      setRun(piece.run);
      if (piece.text) setLines((old) => (old + plain(piece.text)).slice(-400_000));
      return piece;
    });
  }, [id]);
  useEffect(() => { if (stays.current && box.current) box.current.scrollTop = box.current.scrollHeight; }, [lines]);
  const scrolled = ({ currentTarget: element }) => {
    stays.current = element.scrollHeight - element.scrollTop - element.clientHeight < 40;
  };
  return html`<section>
    ${run === null && html`<${Empty}>${page.ticket.checkpoint ? "A checkpoint: no agent works on it." : "No agent has started it yet."}</${Empty}>`}
    ${run !== null && html`<pre class="output" ref=${box} onScroll=${scrolled} tabindex="0" aria-label="Output of its agent">${lines || "No output yet."}</pre>`}
    ${page.ticket.offers.includes("tell") && html`<${Line} keys="i" label="Send a message to its agent" send=${(text) => post(`/v1/tickets/${id}/tell`, { text }, { waits: true })} />`}
  </section>`;
}

function Change({ page, id }) {
  const { data, error } = useLive(() => get(`/v1/tickets/${id}/diff`), [id], (one) => one.ticket === id);
  if (!data) return html`<${Trouble} error=${error} />`;
  return html`<${DiffView} diff=${data} ticket=${id} canSendBack=${page.ticket.offers.includes("bounce")} />`;
}

function Receipts({ page }) {
  const red = page.receipts.findLast((one) => one.verdict !== "green");
  return html`<section>
    ${page.evidence.length > 0 && html`<h2>Criteria</h2><ul class="evidence">${page.evidence.map((one, position) => html`<li key=${position}>
      <span class="state ${{ proven: "good", green: "good", red: "bad" }[one.backing] ?? "needs"}">${one.backing}</span> ${one.criterion}
      ${one.by && html` <code>${one.by}</code>`}${one.idle && " (also green without the change)"}${one.own && " (decided by what the change itself wrote)"}</li>`)}</ul>`}
    ${page.weakened.length > 0 && html`<h2>Weaker tests?</h2><ul>${page.weakened.map((one, position) => html`<li key=${position}><b>${one.sign}</b> ${one.path}${one.line ? `:${one.line}` : ""} ${one.words}</li>`)}</ul>`}
    ${!page.receipts.length && html`<${Empty}>No check has run on its change yet.</${Empty}>`}
    ${page.not_needed.map((one) => html`<p class="hint" key=${one}>Not needed: ${one}</p>`)}
    ${[...page.receipts].reverse().map((one, position) => html`<details class="receipt" key=${position} open=${one === red}>
      <summary><span class="state ${one.verdict === "green" ? "good" : "bad"}">${one.verdict}</span> <b>${one.name}</b> <span class="hint">${duration(one.duration)}, ${clock(one.made_at)}, ${one.commit.slice(0, 10)}</span></summary>
      <p><code>${one.command}</code></p>${one.trusted && html`<p class="hint">Trusted by ${one.trusted} although it stays green when the code is broken.</p>`}<pre class="output short" tabindex="0">${plain(one.tail) || "No output."}</pre><p class="hint">Complete output: ${one.output}</p></details>`)}
  </section>`;
}

function Reviews({ page }) {
  if (!page.reviews.length) return html`<${Empty}>No reviewer has read its change.</${Empty}>`;
  return html`<section>${page.reviews.map((one, position) => html`<article class="review" key=${position}>
    <h3>${one.reader} <span class="state ${{ approve: "good", changes: "bad" }[one.verdict] ?? "busy"}">${one.verdict || "reading"}</span>
      <span class="hint">round ${one.round}${one.binding ? "" : ", not binding"}</span></h3>
    <p class="hint">${one.why}</p>${one.summary && html`<p>${one.summary}</p>`}${one.complaint && html`<p>${one.complaint}</p>`}
    ${one.overruled && html`<p class="step needs">You let the change pass anyway.</p>`}
    ${one.criteria.length > 0 && html`<ul class="evidence">${one.criteria.map((line) => html`<li key=${line.number}><span class="state ${line.met ? "good" : "bad"}">${line.met ? "met" : "not met"}</span> criterion ${line.number} <span class="hint">${line.why}</span></li>`)}</ul>`}${one.notes.map((note) => html`<p class="hint" key=${note}>${note}</p>`)}
    <ul>${(one.findings ?? []).map((finding) => html`<li key=${finding.id}><b>${finding.weight}</b> ${finding.file && html`<code>${finding.file}${finding.line ? `:${finding.line}` : ""}</code>`} ${finding.text}</li>`)}</ul>
  </article>`)}</section>`;
}

// Steps of an agent that a person reads; the other lines of its journal are shown on request.
const STEPS = {
  said: (data) => data.text, called: (data) => `${data.tool}: ${data.input}`, told: (data) => `you wrote: ${data.text}`,
  kept: (data) => `state after ${data.tool}`, interrupted: () => "interrupted", retry: (data) => `the model did not answer (${data.error ?? data.status}): tried again`,
};
const words = (one) => (one.source === "run" && STEPS[one.kind]?.(one.data)) || one.words;

function History({ id }) {
  const { data, error, again } = useLive(() => get("/v1/history", { ticket: id, last: 300 }), [id], (one) => one.ticket === id);
  // The steps of an agent are no events: what it prints says that there are more.
  useEffect(() => followLog(id, async (offset) => {
    const piece = await get(`/v1/tickets/${id}/log`, { offset });
    if (piece.text) again.current();
    return piece;
  }), [id]);
  const [all, setAll] = useState(false);
  if (!data) return html`<${Trouble} error=${error} />`;
  const lines = data.lines.filter((one) => all || one.source === "event" || one.rewind || STEPS[one.kind]);
  return html`<section><div class="toolbar"><label class="check"><input type="checkbox" checked=${all} onChange=${(event) => setAll(event.target.checked)} /> every line of its journal</label>
      ${data.omitted > 0 && html`<span class="hint">${plural(data.omitted, "older line")} not shown.</span>`}</div>
    <ol class="history">${lines.reverse().map((one) => html`<${Moment} key=${`${one.source}${one.run}.${one.n}`} id=${id} one=${one} text=${all ? one.words : words(one)} />`)}</ol></section>`;
}

function Moment({ id, one, text }) {
  const [open, setOpen] = useState(false);
  const rewind = (feedback) => post(`/v1/tickets/${id}/rewind`, { to: one.rewind, feedback }, { waits: true });
  return html`<li tabindex=${one.rewind ? "-1" : undefined}>
    <time title=${day(one.at)}>${clock(one.at)}</time><span class="moment">${text}</span>${one.rule && html`<span class="hint" title=${one.why}>${one.rule}</span>`}
    ${one.rewind && mayAct.value && html`<button data-keys="R" aria-expanded=${open} onClick=${() => setOpen(!open)}>Rewind</button>`}
    ${open && html`<${Say} label="What should it do differently from here? (may stay empty)" verb="Go back to this moment"
      to=${one.rewind} close=${() => setOpen(false)} send=${rewind} />`}</li>`;
}

function About({ page }) {
  const copied = (text) => act(async () => { await copy(text); toast("Copied."); });
  return html`<section>
    ${[["What it asks for", page.text], ["Context", page.context], ["Criteria", page.criteria], ["Plan", page.plan], ["Plan of its agent", page.proposal], ["Feedback to its last attempt", page.feedback]]
      .filter(([, text]) => text).map(([name, text]) => html`<h2 key=${name}>${name}</h2><${Prose} text=${text} />`)}
    <${Facts} of=${{ project: page.ticket.project, driver: page.driver, model: page.model, team: page.crew?.team, labels: page.labels.join(", "), "comes after": page.ticket.after.map((n) => `#${n}`).join(", "),
      proofs: page.prove.join("; "), files: page.files.join(", "), worktree: page.worktree, change: page.change, landed: page.landed, access: page.access, "copied from": page.forked_from }} />
    ${page.worktree && html`<button onClick=${() => copied(page.worktree)}>Copy the worktree's path</button>`}
    ${page.changed_files.length > 0 && html`<h2>${plural(page.changed_files.length, "changed file")}</h2><ul>${page.changed_files.slice(0, 200).map((name) => html`<li key=${name}><code>${name}</code></li>`)}</ul>`}
    <h2>Runs</h2>
    <table><thead><tr><th>Run</th><th>Attempt</th><th>Role</th><th>Time</th><th>Ended</th><th>Cost</th></tr></thead><tbody>
      ${page.runs.map((run) => html`<tr key=${run.id}><td>${run.id}</td><td>${run.attempt}</td><td>${run.role || "builds"}</td>
        <td>${duration((run.ended_at ?? Date.now() / 1000) - run.started_at)}</td><td>${run.outcome ?? "at work"} ${run.detail}</td><td>${run.usage ? dollars(run.usage.usd) : ""}</td></tr>`)}</tbody></table>
  </section>`;
}
