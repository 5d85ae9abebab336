// The merge queue as a picture that moves: what waits, what is tested together, what is red and why, what landed.
import { html, useEffect, useRef } from "../lib.js";
import { Act, Baseline, Empty, Hint, State, Step, TicketLink, Trouble, useNow } from "../parts.js";
import { board, project, useLive, useRead } from "../state.js";
import { get, post } from "../api.js";
import { ago, clock, duration, plural } from "../format.js";

const SHOWN = /^(landing|target|check|person|proof)\./;
const MATTERS = /^(landing|target|check|ticket)\./;
const KINDS = {
  together: "The next batch",
  part: "A part of the red batch",
  ahead: "On top of the batch in test",
  alone: "Once more, alone",
};
const CHECKS = {
  green: ["good", "✓", "passed"],
  red: ["bad", "✗", "failed"],
  broken: ["bad", "!", "could not run"],
  runs: ["busy", "▶", "runs"],
  waits: ["quiet", "·", "waits"],
};
const LANDED = 12;
const NOTHING = { changes: [], tests: [], suspects: [], blamed: [] };
const numbers = (ids) => ids.map((id) => `#${id}`).join(", ");
const suspicion = (ids) =>
  ids.length > 1 && `One of ${numbers(ids)} turns the batch red: parts of it are tested to find which.`;
const kindOf = (test) => KINDS[test.kind] ?? test.kind;

export function Queue() {
  const status = board.value;
  const lines = status ? (status.project ? [status.project] : status.projects) : [];
  const roots = lines.map((one) => one.root).join("\n");
  const load = () => readAll(roots ? roots.split("\n") : []);
  const { data, error } = useLive(load, [roots], (one) => MATTERS.test(one.kind));
  const yard = useRef(null);
  useMoves(yard);
  if (!status || (!data && !error)) return html`<${Empty}>Reading the queue</${Empty}>`;
  const page = stations(status, data ?? NOTHING);
  return html`<section ref=${yard}>
    <h1 class="unseen">Merge queue</h1>
    <${Trouble} error=${error} />
    <p class="hint" role="status">${summary(page, lines)}</p>
    <div class="train">
      <${Stop} name="Before the queue" count=${page.before.length} empty="nothing is checked or reviewed">
        ${page.before.map((one) => html`<${Wagon} key=${one.id} one=${one} about=${one.doing} />`)}
      </${Stop}>
      <${Stop} name="Waits" count=${page.waiting.length} empty="nothing waits to land">
        ${page.waiting.map(
          (one, n) => html`<${Waiting} key=${one.ticket} one=${one} first=${n === 0} known=${page.known} />`,
        )}
      </${Stop}>
      <${Stop} name="In test" className="testing" count=${page.inTest} empty="nothing is tested">
        <${Step} kind="bad" of=${suspicion(page.suspects)} />
        ${page.tests.map(
          (test, n) => html`<${Test} key=${`${test.kind} ${test.tickets} ${n}`} test=${test} page=${page} />`,
        )}
        ${page.aside.length > 0 && html`<p class="hint">Left out of these tests</p>`}
        ${page.aside.map((one) => html`<${Wagon} key=${one.id} one=${one} kind="bad" about=${one.doing} />`)}
      </${Stop}>
      <section class="stop target" aria-label="Landed">
        ${lines.map(
          (one) => html`<h2 key=${one.root}>${one.branch} of ${one.name} <${Baseline} of=${one.baseline} /></h2>`,
        )}
        ${page.landed.map(
          (one) => html`<${Wagon} key=${one.id} one=${one} about=${`${ago(one.moved_at)} ago`}>
            <${Undo} id=${one.id} />
          </${Wagon}>`,
        )}
      </section>
    </div>
    ${
      page.blamed.length > 0 &&
      html`<section class="stop siding" aria-label="Blamed and sent back">
        <h2>Blamed and sent back <span class="count">${page.blamed.length}</span></h2>
        <ol class="coupled">
          ${page.blamed.map((one) => html`<li key=${one.ticket}><${Blamed} one=${one} known=${page.known} /></li>`)}
        </ol>
      </section>`
    }
    <${Happened} />
  </section>`;
}

const Undo = ({ id }) =>
  html`<${Act} keys="u" ask="Revert it by a new ticket?"
    run=${() => post(`/v1/tickets/${id}/undo`, {}, { waits: true })}>
    Undo
  </${Act}>`;

function Happened() {
  const { data, error } = useRead("/v1/history", { cwd: project.value, last: 400 }, SHOWN);
  const lines = (data?.lines ?? [])
    .filter((one) => SHOWN.test(one.kind))
    .slice(-60)
    .reverse();
  const line = (one) => html`<li key=${`${one.source}${one.n}`}>
    <time>${clock(one.at)}</time><span><${TicketLink} id=${one.ticket} /> ${one.words}</span>
    <${Hint} of=${one.rule} title=${one.why} />
  </li>`;
  return html`
    <h2>What happened</h2>
    <${Trouble} error=${error} />
    ${data && !lines.length && html`<${Empty}>Nothing was checked or landed yet.</${Empty}>`}
    <ol class="history">${lines.map(line)}</ol>
  `;
}

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
  const inside = (one) => tested.has(one.ticket) || blamed.has(one.ticket);
  const busy = (one) => one.state === "queued" && (inside(one) || /^in test/.test(one.doing));
  const left = queue.changes.filter((one) => busy(one) && !inside(one));
  const done = status.tickets.filter((one) => one.state === "done");
  return {
    ...queue,
    known,
    inTest: tested.size,
    before: status.tickets.filter((one) => one.state === "checking" || one.state === "reviewing"),
    waiting: queue.changes.filter((one) => !busy(one)),
    aside: left.map((one) => known.get(one.ticket)).filter(Boolean),
    landed: done.sort((a, b) => b.moved_at - a.moved_at).slice(0, LANDED),
  };
}

// The picture in a sentence, which a screen reader says again when it changes.
function summary(page, lines) {
  const inside = (one) =>
    [one.upstream && "your commits", one.tickets.length && numbers(one.tickets)].filter(Boolean).join(" and ");
  const tests = page.tests.map((one) => `${kindOf(one)}: ${inside(one)}`);
  const blamed = page.blamed
    .filter((one) => one.state === "blamed")
    .map((one) => `#${one.ticket} is blamed by ${one.checks.join(", ")}`);
  const targets = lines.filter((one) => one.baseline === "red").map((one) => `${one.branch} of ${one.name} is red`);
  const waits = page.waiting.length;
  const last = waits ? `${plural(waits, "change")} ${waits === 1 ? "waits" : "wait"}` : "Nothing waits";
  return `${[...targets, ...(tests.length ? tests : ["Nothing is tested"]), ...blamed, last].join(". ")}.`;
}

function Stop({ name, count, empty, className = "", children }) {
  const none = !count && ![children].flat(2).some((one) => one?.type !== Step && one);
  return html`<section class="stop ${className} ${none && className !== "testing" ? "none" : ""}" aria-label=${name}>
    <h2>${name} <span class="count">${count}</span></h2>
    ${children}<${Hint} of=${none && empty} />
  </section>`;
}

const Wagon = ({ one, about, kind = "", children }) =>
  html`<div class="wagon ${kind}" data-wagon=${one.id} data-what=${`#${one.id} ${one.title}`}>
    <a href=${`#/ticket/${one.id}`} class="item" data-ticket=${one.id}>
      <span class="number">#${one.id}</span> <span class="title">${one.title}</span>
    </a>
    <span class="about">${one.state && html`<${State} of=${one.state} /> `}${about}</span>
    ${children && html`<span class="actions">${children}</span>`}
  </div>`;

function Waiting({ one, first, known }) {
  const ticket = known.get(one.ticket) ?? { id: one.ticket, title: one.title };
  const queued = one.state === "queued";
  const about = queued
    ? [`place ${one.place}`, plural(one.lines, "line"), one.doing].filter(Boolean).join(", ")
    : one.doing;
  const go = (verb, body) => () => post(`/v1/tickets/${one.ticket}/${verb}`, body);
  return html`<${Wagon} one=${{ ...ticket, state: queued ? "" : ticket.state }} kind=${queued ? "" : "needs"}
    about=${about}>
    ${queued && !first && html`<${Act} run=${go("place", { to: "first" })}>To the front</${Act}>`}
    ${!queued && html`<${Act} kind="primary" keys="m" run=${go("land")}>Land it</${Act}>`}
  </${Wagon}>`;
}

// One test: the checks in front, the coupled changes behind, in the order in which they are put on the target.
function Test({ test, page }) {
  const now = useNow();
  const red = test.checks.some((one) => one.state === "red" || one.state === "broken");
  const suspect = (id) => (page.suspects.includes(id) ? "suspect" : "");
  const check = (one) => {
    const [kind, sign, word] = CHECKS[one.state] ?? CHECKS.waits;
    return html`
      <span key=${one.name} class="state ${kind} ${one.state === "runs" ? "moving" : ""}">
        <span aria-hidden="true">${sign}</span> ${one.name} <span class="unseen">${word}</span>
      </span>
      ${" "}
    `;
  };
  const wagon = (id) => html`<li key=${id}>
    <${Wagon} one=${{ id, title: page.known.get(id)?.title ?? "" }} kind=${suspect(id) && "bad"} about=${suspect(id)} />
  </li>`;
  const label = `${kindOf(test)}: ${numbers(test.tickets)}`;
  return html`<article class="test ${red ? "bad" : ""} ${test.kind === "part" ? "part" : ""}" aria-label=${label}>
    <header><b>${kindOf(test)}</b> <span class="age">${duration(now - test.since)}</span></header>
    <p class="engine">${test.checks.map(check)}</p>
    <ol class="coupled">
      ${test.upstream && html`<li><div class="wagon"><span class="title">Your own commits</span></div></li>`}
      ${test.tickets.map(wagon)}
    </ol>
  </article>`;
}

function Blamed({ one, known }) {
  const now = one.state === "blamed";
  const check = (name) =>
    html`<a key=${name} class="state bad" href=${`#/ticket/${one.ticket}/receipts`}>✗ ${name}</a> `;
  const about = html`
    ${one.checks.length > 0 && html`blamed by ${one.checks.map(check)}`}
    ${now ? "they run once more, alone" : `${one.why}, ${ago(one.at)} ago`}
  `;
  const state = now ? "" : (known.get(one.ticket)?.state ?? one.state);
  return html`<${Wagon} one=${{ id: one.ticket, title: one.title, state }} kind="bad" about=${about} />`;
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
      if (!still) roll(wagon, from && [from[0] - x, from[1] - y], before.size);
    }
    seen.current = after;
  });
}

function roll(wagon, by, known) {
  if (by && Math.abs(by[0]) + Math.abs(by[1]) >= 2) {
    const start = { transform: `translate(${by[0]}px, ${by[1]}px)`, zIndex: 2 };
    wagon.animate([start, { transform: "none", zIndex: 2 }], { duration: 600, easing: "ease-in-out" });
  } else if (!by && known) {
    const start = { transform: "translateX(-20px)", opacity: 0.2 };
    wagon.animate([start, { transform: "none", opacity: 1 }], { duration: 350, easing: "ease-out" });
  }
}
