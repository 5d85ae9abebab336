// The board: tickets as columns, as a tree, or as a graph.
import { html, signal, useEffect, useMemo, useState } from "../lib.js";
import { Act, Empty, Rows, Since, State } from "../parts.js";
import { board, mayAct, project, questions, store, stored, waits } from "../state.js";
import { get, post } from "../api.js";
import { dollars, plural } from "../format.js";
import { followAll } from "../output.js";
import { ofCard, ofColumn } from "./drag.js";

const COLUMNS = [
  ["Needs you", (one) => one.question || one.state === "parked" || one.state === "failed"],
  ["Queued", (one) => one.state === "queued" || one.state === "draft"],
  ["Working", (one) => one.state === "working"],
  ["Checks and review", (one) => one.state === "checking" || one.state === "reviewing"],
  ["Landing", (one) => one.state === "landing"],
  ["Ended", (one) => one.state === "done" || one.state === "stopped"],
];

// What the person looks for stays while they read a ticket.
const wanted = signal({ filter: "", epic: "" });
// Runs at work by ticket: the last step of each, and what it cost.
const atWork = signal(new Map());

function useAtWork() {
  useEffect(() => {
    if (!mayAct.value) return undefined;
    let known = "";
    const stop = followAll(project.value, (running) => {
      const now = JSON.stringify(running.map((one) => [one.ticket, one.activity, one.usage?.usd]));
      if (now !== known) atWork.value = new Map(running.map((one) => [one.ticket, one]));
      known = now;
    });
    return () => { stop(); atWork.value = new Map(); };
  }, [project.value]);
}

export function Board({ view = stored("view", "columns") }) {
  useAtWork();
  const [filter, epic] = [wanted.value.filter, wanted.value.epic];
  const setFilter = (text) => { wanted.value = { ...wanted.value, filter: text }; };
  const setEpic = (name) => { wanted.value = { ...wanted.value, epic: name }; };
  const status = board.value;
  const shown = useMemo(() => select(status?.tickets ?? [], filter, epic), [status, filter, epic]);
  if (!status) return html`<${Empty}>Reading the board</${Empty}>`;
  const epics = [...new Set(status.tickets.map((one) => one.epic).filter(Boolean))].sort();
  store("view", view);
  return html`<section>
    <${NextSteps} status=${status} />
    <div class="toolbar">
      <nav class="tabs" aria-label="View">${["columns", "tree", "graph"].map((name) => html`
        <a key=${name} href=${`#/board/${name}`} aria-current=${name === view ? "page" : undefined}>${name[0].toUpperCase() + name.slice(1)}</a>`)}</nav>
      <input type="search" id="filter" aria-label="Filter tickets" placeholder="Filter ( / )" value=${filter}
        onInput=${(event) => setFilter(event.target.value)} />
      ${epics.length > 0 && html`<select aria-label="Epic" value=${epic} onChange=${(event) => setEpic(event.target.value)}>
        <option value="">All epics</option>${epics.map((name) => html`<option key=${name}>${name}</option>`)}</select>`}
    </div>
    ${status.tickets.length === 0 && html`<${Empty}>No tickets yet. ${mayAct.value && html`<a href="#/new">Write the first one.</a>`}</${Empty}>`}
    ${status.tickets.length > 0 && shown.length === 0 && html`<${Empty}>No ticket matches. <button onClick=${() => { setFilter(""); setEpic(""); }}>Show all</button></${Empty}>`}
    ${shown.length > 0 && (view === "tree" ? html`<${Tree} tickets=${shown} />` : view === "graph" ? html`<${LazyGraph} shown=${shown} />` : html`<${Columns} tickets=${shown} />`)}
    ${status.omitted > 0 && html`<p class="hint">${plural(status.omitted, "ended ticket")} not listed: <a href="#/search">search all</a>.</p>`}
  </section>`;
}

function select(tickets, filter, epic) {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  return tickets.filter((one) => {
    const text = `#${one.id} ${one.title} ${one.state} ${one.epic} ${one.project} ${one.doing}`.toLowerCase();
    return (!epic || one.epic === epic) && words.every((word) => text.includes(word));
  });
}

// What to do next, in one place: questions, changes to collect, trust.
function NextSteps({ status }) {
  const lines = status.project ? [status.project] : status.projects;
  return html`<div class="next">
    <${Waits} />
    ${lines.map((one) => html`<${ProjectSteps} line=${one} key=${one.root} />`)}
    ${status.daemon.sandbox_missing && html`<p class="step bad">Agents run without a sandbox: ${status.daemon.sandbox}</p>`}
  </div>`;
}

// What only the person can settle, each a link to where.
const elsewhere = () => {
  const here = board.value?.project?.name;
  const others = here ? questions.value.filter((one) => one.project && one.project !== here).length : 0;
  return others ? ` (${others === questions.value.length ? "all" : others} in other projects)` : "";
};

function Waits() {
  const { plans, failed } = waits.value;
  const all = [
    [waits.value.questions, `question${elsewhere()}`, "#/inbox", `questions${elsewhere()}`], [plans, "plan to decide", "#/plans", "plans to decide"],
    [failed.length, "failed ticket", `#/ticket/${failed[0]?.id}`],
  ].filter(([count]) => count > 0);
  return all.length > 0 && html`<p class="step needs">Waits for you: ${all.map(([count, one, place, many]) => html`
    <a key=${one} href=${place}>${plural(count, one, many)}</a>`)}</p>`;
}

function ProjectSteps({ line }) {
  const cwd = line.root;
  return html`
    ${line.ahead > 0 && html`<div class="step good"><span>${plural(line.ahead, "landed commit")} of ${line.name} ${line.ahead === 1 ? "is" : "are"} not in your branch yet.</span>
      <${Act} keys="C" run=${() => post("/v1/project/collect", { cwd })}>Collect</${Act}></div>`}
    ${line.paused && html`<div class="step needs"><span>${line.name} is paused: nothing new starts.</span>
      <${Act} run=${() => post("/v1/project/resume", { cwd })}>Resume</${Act}></div>`}
    ${!line.trusted && html`<div class="step bad"><span>The settings of ${line.name} are not trusted, so nothing runs.</span> <a href="#/projects">Read and trust them</a></div>`}
    ${line.baseline === "red" && html`<div class="step bad"><span>The checks fail on ${line.branch} of ${line.name} itself. <a href="#/queue">See the queue</a></span></div>`}
    ${line.notes.map((note) => html`<p class="step needs" key=${note}>${note}</p>`)}`;
}

function Columns({ tickets }) {
  const left = new Set(tickets);
  const columns = COLUMNS.map(([name, wants]) => {
    const inside = tickets.filter((one) => left.has(one) && wants(one));
    inside.forEach((one) => left.delete(one));
    return [name, name === "Ended" ? inside.sort((a, b) => b.moved_at - a.moved_at) : inside];
  });
  // An empty column is narrow: the others get its room.
  const widths = columns.map(([, inside]) => (inside.length ? "minmax(13rem, 1fr)" : "minmax(6.5rem, .4fr)")).join(" ");
  return html`<div class="columns" style=${{ "--widths": widths }}>${columns.map(([name, inside]) => html`
    <section class="column ${inside.length ? "" : "none"}" key=${name} aria-label=${name} ...${ofColumn(name) || {}}>
      <h2>${name} <span class="count">${inside.length}</span></h2>
      ${inside.length > 60 ? html`<${Rows} items=${inside} height=${92} row=${(one) => html`<${Card} one=${one} key=${one.id} />`} />`
        : inside.map((one) => html`<${Card} one=${one} key=${one.id} />`)}
    </section>`)}</div>`;
}

const ASKS = { gate: "Ready to land: it waits for you", change: "Touches protected files or tests: it waits for you", attempts: "Out of attempts" };

// What it does or, where it needs the person, why.
function about(one) {
  const asked = one.question && questions.value.find((other) => other.id === one.question);
  if (asked) return ASKS[asked.kind] ?? `Asks: ${asked.words}`;
  return one.question ? "asks you something" : one.state === "failed" ? `Failed: ${one.reason}` : one.reason || one.doing;
}

// What its agent does now, how long its work has lasted, and what that cost.
function Doing({ one }) {
  const run = one.state === "working" && !one.question ? atWork.value.get(one.id) : undefined;
  return html`<span class="about">${run?.activity || about(one)}${one.doing_since && html`, <${Since} at=${one.doing_since} />`}${run?.usage ? `, ${dollars(run.usage.usd)}` : ""}</span>`;
}

export function Card({ one }) {
  return html`<a class="card" href=${`#/ticket/${one.id}`} data-ticket=${one.id} ...${ofCard(one) || {}}>
    <span class="card-head"><span class="number">#${one.id}</span> <${State} of=${one.state} />
      ${one.attempt > 1 && html`<span class="flag">attempt ${one.attempt} of ${one.max_attempts}</span>`}
      ${!one.doing_since && html`<span class="age"><${Since} at=${one.moved_at} /></span>`}</span>
    <span class="title">${one.title}</span>
    <${Doing} one=${one} />
    ${(one.epic || one.conflicts_with.length > 0 || one.unproven > 0) && html`<span class="flags">
      ${one.epic && html`<span class="flag">${one.epic}</span>`}
      ${one.conflicts_with.length > 0 && html`<span class="flag needs">will conflict with ${one.conflicts_with.map((n) => (n ? `#${n}` : "landed code")).join(", ")}</span>`}
      ${one.unproven > 0 && html`<span class="flag">${one.unproven} unproven</span>`}</span>`}
  </a>`;
}

// Each ticket below the first one that it comes after.
function Tree({ tickets }) {
  const known = new Map(tickets.map((one) => [one.id, one]));
  const below = new Map();
  const roots = [];
  for (const one of tickets) {
    const parent = one.after.find((id) => known.has(id));
    if (parent === undefined) roots.push(one);
    else below.set(parent, [...(below.get(parent) ?? []), one]);
  }
  const rows = [];
  const walk = (one, depth) => {
    rows.push([one, depth]);
    for (const child of below.get(one.id) ?? []) walk(child, depth + 1);
  };
  roots.forEach((one) => walk(one, 0));
  return html`<${Rows} className="tree" items=${rows} height=${38} row=${([one, depth]) => html`
    <a class="row" key=${one.id} href=${`#/ticket/${one.id}`} data-ticket=${one.id} style=${{ paddingLeft: `${8 + Math.min(depth, 8) * 22}px` }}>
      <span class="number">#${one.id}</span><${State} of=${one.state} /><span class="title">${one.title}</span>
      <${Doing} one=${one} /></a>`} />`;
}

function LazyGraph({ shown }) {
  const [loaded, setLoaded] = useState(null);
  useMemo(() => { import("./graph.js").then((module) => setLoaded(() => module.Graph)); }, []);
  return loaded ? html`<${loaded} shown=${shown} cwd=${project.value || (board.value.projects.length === 1 ? board.value.projects[0].root : "")} />` : html`<${Empty}>Drawing</${Empty}>`;
}

export function StatusLine() {
  const status = board.value;
  if (!status) return null;
  const order = ["working", "checking", "reviewing", "landing", "queued", "parked", "failed", "done", "stopped"];
  return html`<p class="statusline">${order.filter((state) => status.counts[state]).map((state) => html`
    <span key=${state}><b>${status.counts[state]}</b> <${State} of=${state} /></span>`)}
    ${status.usage && html`<a href="#/usage">${dollars(status.usage.usd)} spent</a>`}</p>`;
}
