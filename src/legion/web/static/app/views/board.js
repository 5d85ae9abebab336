// The board: tickets as columns, as a tree, or as a graph.
import { html, signal, useEffect, useMemo, useState } from "../lib.js";
import { Empty, Flag, Rows, Since, State, Tabs, TicketRow } from "../parts.js";
import { board, mayAct, project, questions, store, stored } from "../state.js";
import { spentOf, plural } from "../format.js";
import { followAll } from "../output.js";
import { ofCard, ofColumn } from "./drag.js";
import { NextSteps } from "./steps.js";

/** @type {[string, (one: any) => boolean][]} */
const COLUMNS = [
  ["Needs you", (one) => one.question || one.state === "parked" || one.state === "failed"],
  ["Queued", (one) => one.state === "queued" || one.state === "draft"],
  ["Working", (one) => one.state === "working"],
  ["Checks and review", (one) => one.state === "checking" || one.state === "reviewing"],
  ["Landing", (one) => one.state === "landing"],
  ["Ended", (one) => one.state === "done" || one.state === "stopped"],
];
const VIEWS = [
  ["columns", "Columns"],
  ["tree", "Tree"],
  ["graph", "Graph"],
];
const MANY = 60; // Cards of a column: of more, only those that are seen are drawn.

// What the person looks for stays while they read a ticket.
const wanted = signal({ filter: "", epic: "" });
const want = (more) => {
  wanted.value = { ...wanted.value, ...more };
};
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
    return () => {
      stop();
      atWork.value = new Map();
    };
  }, [project.value]);
}

export function Board({ view = stored("view", "columns") }) {
  useAtWork();
  const { filter, epic } = wanted.value;
  const status = board.value;
  const shown = useMemo(() => select(status?.tickets ?? [], filter, epic), [status, filter, epic]);
  if (!status) return html`<${Empty}>Reading the board</${Empty}>`;
  store("view", view);
  const Part = { tree: Tree, graph: LazyGraph }[view] ?? Columns;
  const none = html`No tickets yet. ${mayAct.value && html`<a href="#/new">Write the first one.</a>`}`;
  const all = html`<button onClick=${() => want({ filter: "", epic: "" })}>Show all</button>`;
  return html`<section>
    <${NextSteps} status=${status} />
    <div class="toolbar">
      <${Tabs} names=${VIEWS} now=${view} base="#/board" label="View" />
      <input type="search" id="filter" aria-label="Filter tickets" placeholder="Filter ( / )" value=${filter}
        onInput=${(event) => want({ filter: event.target.value })} />
      <${EpicChoice} tickets=${status.tickets} now=${epic} />
    </div>
    ${status.tickets.length === 0 && html`<${Empty}>${none}</${Empty}>`}
    ${status.tickets.length > 0 && !shown.length && html`<${Empty}>No ticket matches. ${all}</${Empty}>`}
    ${shown.length > 0 && html`<${Part} tickets=${shown} />`}
    ${
      status.omitted > 0 &&
      html`<p class="hint">${plural(status.omitted, "ended ticket")} not listed: <a href="#/search">search all</a>.</p>`
    }
  </section>`;
}

function EpicChoice({ tickets, now }) {
  const epics = [...new Set(tickets.map((one) => one.epic).filter(Boolean))].sort();
  if (!epics.length) return null;
  return html`<select aria-label="Epic" value=${now} onChange=${(event) => want({ epic: event.target.value })}>
    <option value="">All epics</option>${epics.map((name) => html`<option key=${name}>${name}</option>`)}
  </select>`;
}

function select(tickets, filter, epic) {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  return tickets.filter((one) => {
    const text = `#${one.id} ${one.title} ${one.state} ${one.epic} ${one.project} ${one.doing}`.toLowerCase();
    return (!epic || one.epic === epic) && words.every((word) => text.includes(word));
  });
}

function Columns({ tickets }) {
  const left = new Set(tickets);
  /** @type {[string, any[]][]} */
  const columns = COLUMNS.map(([name, wants]) => {
    const inside = tickets.filter((one) => left.has(one) && wants(one));
    inside.forEach((one) => left.delete(one));
    return [name, name === "Ended" ? inside.sort((a, b) => b.moved_at - a.moved_at) : inside];
  });
  // An empty column is narrow: the others get its room.
  const widths = columns.map(([, inside]) => (inside.length ? "minmax(13rem, 1fr)" : "minmax(6.5rem, .4fr)")).join(" ");
  const card = (one) => html`<${Card} one=${one} key=${one.id} />`;
  const column = ([name, inside]) => html`<section class="column ${inside.length ? "" : "none"}" key=${name}
    aria-label=${name} ...${ofColumn(name) || {}}>
    <h2>${name} <span class="count">${inside.length}</span></h2>
    ${inside.length > MANY ? html`<${Rows} items=${inside} height=${92} row=${card} />` : inside.map(card)}
  </section>`;
  return html`<div class="columns" style=${{ "--widths": widths }}>${columns.map(column)}</div>`;
}

const ASKS = { gate: "Ready to land: it waits for you", attempts: "Out of attempts" };

// What it does or, where it needs the person, why.
function about(one) {
  const asked = one.question && questions.value.find((other) => other.id === one.question);
  if (asked) return ASKS[asked.kind] ?? ((asked.kind === "change" && one.reason) || `Asks: ${asked.words}`);
  return one.question
    ? "asks you something"
    : one.state === "failed"
      ? `Failed: ${one.reason}`
      : one.reason || one.doing;
}

// What its agent does now, how long its work has lasted, and what that cost.
function Doing({ one }) {
  const run = one.state === "working" && !one.question ? atWork.value.get(one.id) : undefined;
  const since = one.doing_since && html`, <${Since} at=${one.doing_since} />`;
  return html`<span class="about">
    ${run?.activity || about(one)}${since}${run?.usage ? `, ${spentOf(run.usage)}` : ""}
  </span>`;
}

function Card({ one }) {
  const clash = one.conflicts_with.map((n) => (n ? `#${n}` : "landed code")).join(", ");
  const inside = one.conflicts_in.length ? ` in ${one.conflicts_in.join(", ")}` : "";
  return html`<a class="card" href=${`#/ticket/${one.id}`} data-ticket=${one.id} ...${ofCard(one) || {}}>
    <span class="card-head">
      <span class="number">#${one.id}</span> <${State} of=${one.state} />
      <${Flag} of=${one.attempt > 1 && `attempt ${one.attempt} of ${one.max_attempts}`} />
      ${!one.doing_since && html`<span class="age"><${Since} at=${one.moved_at} /></span>`}
    </span>
    <span class="title">${one.title}</span><${Doing} one=${one} />
    ${
      (one.epic || clash || one.unproven > 0) &&
      html`<span class="flags">
        <${Flag} of=${one.epic} /><${Flag} of=${clash && `will conflict with ${clash}${inside}`} kind="needs" />
        <${Flag} of=${one.unproven > 0 && `${one.unproven} unproven`} />
      </span>`
    }
  </a>`;
}

// Each ticket below the first one that it comes after.
function Tree({ tickets }) {
  const known = new Map(tickets.map((one) => [one.id, one]));
  const below = new Map();
  for (const one of tickets) {
    const parent = one.after.find((id) => known.has(id));
    below.set(parent, [...(below.get(parent) ?? []), one]);
  }
  const walk = (parent, depth) =>
    (below.get(parent) ?? []).flatMap((one) => [[one, depth], ...walk(one.id, depth + 1)]);
  const row = ([one, depth]) => html`<${TicketRow} key=${one.id} one=${one} about=${html`<${Doing} one=${one} />`}
    style=${{ paddingLeft: `${8 + Math.min(depth, 8) * 22}px` }} />`;
  return html`<${Rows} className="tree" items=${walk(undefined, 0)} height=${38} row=${row} />`;
}

function LazyGraph({ tickets }) {
  const [loaded, setLoaded] = useState(null);
  useMemo(() => {
    import("./graph.js").then((module) => setLoaded(() => module.Graph));
  }, []);
  const [first, ...others] = board.value.projects;
  const cwd = project.value || (others.length || !first ? "" : first.root);
  return loaded ? html`<${loaded} shown=${tickets} cwd=${cwd} />` : html`<${Empty}>Drawing</${Empty}>`;
}

const ORDER = ["working", "checking", "reviewing", "landing", "queued", "parked", "failed", "done", "stopped"];

export function StatusLine() {
  const status = board.value;
  if (!status) return null;
  const count = (state) => html`<span key=${state}><b>${status.counts[state]}</b> <${State} of=${state} /></span>`;
  return html`<p class="statusline">
    ${ORDER.filter((state) => status.counts[state]).map(count)}
    ${status.usage && html`<a href="#/usage">${spentOf(status.usage, "an unknown sum")} spent</a>`}
  </p>`;
}
