// The merge queue as a picture that moves: what waits, what is tested together, what is red and why, what landed.
import { html, useEffect, useRef } from "../lib.js";
import { Act, Baseline, Empty, State, Trouble, useNow } from "../parts.js";
import { board, project, useLive } from "../state.js";
import { get, post } from "../api.js";
import { ago, clock, duration, plural } from "../format.js";

const SHOWN = /^(landing|target|check|person|proof)\./;
const MATTERS = /^(landing|target|check|ticket)\./;
const KINDS = { together: "The next batch", part: "A part of the red batch", ahead: "On top of the batch in test", alone: "Once more, alone" };
const CHECKS = { green: ["good", "✓", "passed"], red: ["bad", "✗", "failed"], broken: ["bad", "!", "could not run"], runs: ["busy", "▶", "runs"], waits: ["quiet", "·", "waits"] };
const LANDED = 12;

export function Queue() {
  const status = board.value;
  const lines = status ? (status.project ? [status.project] : status.projects) : [];
  const roots = lines.map((one) => one.root).join("\n");
  const { data, error } = useLive(() => readAll(roots ? roots.split("\n") : []), [roots], (one) => MATTERS.test(one.kind));
  const history = useLive(() => get("/v1/history", { cwd: project.value, last: 400 }), [project.value], (one) => SHOWN.test(one.kind));
  const yard = useRef(null);
  useMoves(yard);
  if (!status || (!data && !error)) return html`<${Empty}>Reading the queue</${Empty}>`;
  const page = stations(status, data ?? NOTHING);
  return html`<section ref=${yard}>
    <h1 class="unseen">Merge queue</h1><${Trouble} error=${error} />
    <p class="hint" role="status">${summary(page, lines)}</p>
    <div class="train">
      <${Stop} name="Before the queue" count=${page.before.length} empty="nothing is checked or reviewed">${page.before.map((one) => html`<${Wagon} key=${one.id} one=${one} about=${one.doing} />`)}</${Stop}>
      <${Stop} name="Waits" count=${page.waiting.length} empty="nothing waits to land">${page.waiting.map((one, place) => html`<${Waiting} key=${one.ticket} one=${one} first=${place === 0} known=${page.known} />`)}</${Stop}>
      <${Stop} name="In test" className="testing" count=${page.inTest} empty="nothing is tested">
        ${page.suspects.length > 1 && html`<p class="step bad">One of ${numbers(page.suspects)} turns the batch red: parts of it are tested to find which.</p>`}
        ${page.tests.map((test, n) => html`<${Test} key=${`${test.kind} ${test.tickets} ${n}`} test=${test} page=${page} />`)}
        ${page.aside.length > 0 && html`<p class="hint">Left out of these tests</p>${page.aside.map((one) => html`<${Wagon} key=${one.id} one=${one} kind="bad" about=${one.doing} />`)}`}</${Stop}>
      <section class="stop target" aria-label="Landed">${lines.map((one) => html`<h2 key=${one.root}>${one.branch} of ${one.name} <${Baseline} of=${one.baseline} /></h2>`)}
        ${page.landed.map((one) => html`<${Wagon} key=${one.id} one=${one} about=${`${ago(one.moved_at)} ago`}><${Act} keys="u" ask="Revert it by a new ticket?" run=${() => post(`/v1/tickets/${one.id}/undo`, {}, { waits: true })}>Undo</${Act}></${Wagon}>`)}</section>
    </div>
    ${page.blamed.length > 0 && html`<section class="stop siding" aria-label="Blamed and sent back"><h2>Blamed and sent back <span class="count">${page.blamed.length}</span></h2><ol class="coupled">${page.blamed.map((one) => html`<li key=${one.ticket}><${Blamed} one=${one} known=${page.known} /></li>`)}</ol></section>`}
    <h2>What happened</h2><${Trouble} error=${history.error} />
    ${history.data && !history.data.lines.some((one) => SHOWN.test(one.kind)) && html`<${Empty}>Nothing was checked or landed yet.</${Empty}>`}
    <ol class="history">${(history.data?.lines ?? []).filter((one) => SHOWN.test(one.kind)).slice(-60).reverse().map((one) => html`<li key=${`${one.source}${one.n}`}>
      <time>${clock(one.at)}</time><span>${one.ticket && html`<a href=${`#/ticket/${one.ticket}`}>#${one.ticket}</a> `}${one.words}</span>${one.rule && html`<span class="hint" title=${one.why}>${one.rule}</span>`}</li>`)}</ol>
  </section>`;
}

const NOTHING = { changes: [], tests: [], suspects: [], blamed: [] };

// The queues of all shown projects as one.
async function readAll(roots) {
  const pages = await Promise.all(roots.map((cwd) => get("/v1/queue", { cwd })));
  return Object.fromEntries(Object.keys(NOTHING).map((part) => [part, pages.flatMap((one) => one[part])]));
}

// Where each ticket is.
function stations(status, queue) {
  const known = new Map(status.tickets.map((one) => [one.id, one]));
  const tested = new Set(queue.tests.flatMap((one) => one.tickets));
  const blamed = new Set(queue.blamed.filter((one) => one.state === "blamed").map((one) => one.ticket));
  const busy = (one) => tested.has(one.ticket) || blamed.has(one.ticket) || /^in test/.test(one.doing);
  const left = queue.changes.filter((one) => one.state === "queued" && busy(one) && !tested.has(one.ticket) && !blamed.has(one.ticket));
  return {
    known, tests: queue.tests, suspects: queue.suspects, blamed: queue.blamed, inTest: tested.size,
    before: status.tickets.filter((one) => one.state === "checking" || one.state === "reviewing"),
    waiting: queue.changes.filter((one) => one.state !== "queued" || !busy(one)),
    aside: left.map((one) => known.get(one.ticket)).filter(Boolean),
    landed: status.tickets.filter((one) => one.state === "done").sort((a, b) => b.moved_at - a.moved_at).slice(0, LANDED),
  };
}

const numbers = (ids) => ids.map((id) => `#${id}`).join(", ");

// The picture in a sentence, which a screen reader says again when it changes.
function summary(page, lines) {
  const tests = page.tests.map((one) => `${KINDS[one.kind] ?? one.kind}: ${[one.upstream && "your commits", one.tickets.length && numbers(one.tickets)].filter(Boolean).join(" and ")}`);
  const blamed = page.blamed.filter((one) => one.state === "blamed").map((one) => `#${one.ticket} is blamed by ${one.checks.join(", ")}`);
  const targets = lines.filter((one) => one.baseline === "red").map((one) => `${one.branch} of ${one.name} is red`);
  return [...targets, ...(tests.length ? tests : ["Nothing is tested"]), ...blamed, page.waiting.length ? `${plural(page.waiting.length, "change")} ${page.waiting.length === 1 ? "waits" : "wait"}` : "Nothing waits"].join(". ") + ".";
}

function Stop({ name, count, empty, className = "", children }) {
  const none = !count && ![children].flat(2).some(Boolean);
  return html`<section class="stop ${className} ${none && className !== "testing" ? "none" : ""}" aria-label=${name}><h2>${name} <span class="count">${count}</span></h2>${children}${none && html`<p class="hint">${empty}</p>`}</section>`;
}

function Wagon({ one, about, kind = "", children }) {
  return html`<div class="wagon ${kind}" data-wagon=${one.id} data-what=${`#${one.id} ${one.title}`}><a href=${`#/ticket/${one.id}`} class="item" data-ticket=${one.id}><span class="number">#${one.id}</span> <span class="title">${one.title}</span></a>
    <span class="about">${one.state && html`<${State} of=${one.state} /> `}${about}</span>${children && html`<span class="actions">${children}</span>`}</div>`;
}

function Waiting({ one, first, known }) {
  const ticket = known.get(one.ticket) ?? { id: one.ticket, title: one.title };
  const about = one.state === "queued" ? `place ${one.place}, ${plural(one.lines, "line")}${one.doing ? `, ${one.doing}` : ""}` : one.doing;
  return html`<${Wagon} one=${{ ...ticket, state: one.state === "queued" ? "" : ticket.state }} kind=${one.state === "queued" ? "" : "needs"} about=${about}>
    ${one.state === "queued" && !first && html`<${Act} run=${() => post(`/v1/tickets/${one.ticket}/place`, { to: "first" })}>To the front</${Act}>`}
    ${one.state !== "queued" && html`<${Act} kind="primary" keys="m" run=${() => post(`/v1/tickets/${one.ticket}/land`)}>Land it</${Act}>`}</${Wagon}>`;
}

// One test: the checks in front, the coupled changes behind, in the order in which they are put on the target.
function Test({ test, page }) {
  const now = useNow();
  const red = test.checks.some((one) => one.state === "red" || one.state === "broken");
  return html`<article class="test ${red ? "bad" : ""} ${test.kind === "part" ? "part" : ""}" aria-label=${`${KINDS[test.kind] ?? test.kind}: ${numbers(test.tickets)}`}>
    <header><b>${KINDS[test.kind] ?? test.kind}</b> <span class="age">${duration(now - test.since)}</span></header>
    <p class="engine">${test.checks.map((one) => { const [kind, sign, word] = CHECKS[one.state] ?? CHECKS.waits; return html`<span key=${one.name} class="state ${kind} ${one.state === "runs" ? "moving" : ""}"><span aria-hidden="true">${sign}</span> ${one.name} <span class="unseen">${word}</span></span> `; })}</p>
    <ol class="coupled">${test.upstream && html`<li><div class="wagon"><span class="title">Your own commits</span></div></li>`}
      ${test.tickets.map((id) => html`<li key=${id}><${Wagon} one=${{ id, title: page.known.get(id)?.title ?? "" }} kind=${page.suspects.includes(id) ? "bad" : ""} about=${page.suspects.includes(id) ? "suspect" : ""} /></li>`)}</ol></article>`;
}

function Blamed({ one, known }) {
  const checks = one.checks.map((name) => html`<a key=${name} class="state bad" href=${`#/ticket/${one.ticket}/receipts`}>✗ ${name}</a> `);
  return html`<${Wagon} one=${{ id: one.ticket, title: one.title, state: one.state === "blamed" ? "" : known.get(one.ticket)?.state ?? one.state }} kind="bad"
    about=${html`${one.checks.length ? html`blamed by ${checks}` : ""}${one.state === "blamed" ? "they run once more, alone" : `${one.why}, ${ago(one.at)} ago`}`} />`;
}

// A wagon that is at another place than before rolls there.
function useMoves(yard) {
  const seen = useRef(new Map());
  useEffect(() => {
    const before = seen.current;
    const after = new Map();
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    for (const wagon of yard.current?.querySelectorAll("[data-wagon]") ?? []) {
      const id = wagon.dataset.wagon;
      if (after.has(id)) continue;
      const box = wagon.getBoundingClientRect();
      const [x, y] = [box.left + scrollX, box.top + scrollY];
      after.set(id, [x, y]);
      const from = before.get(id);
      if (still || (from && Math.abs(from[0] - x) + Math.abs(from[1] - y) < 2)) continue;
      if (from) wagon.animate([{ transform: `translate(${from[0] - x}px, ${from[1] - y}px)`, zIndex: 2 }, { transform: "none", zIndex: 2 }], { duration: 600, easing: "ease-in-out" });
      else if (before.size) wagon.animate([{ transform: "translateX(-20px)", opacity: 0.2 }, { transform: "none", opacity: 1 }], { duration: 350, easing: "ease-out" });
    }
    seen.current = after;
  });
}
