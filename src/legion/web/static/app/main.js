// The page's frame: login, navigation, notifications.
import { html, render, useEffect, useState } from "./lib.js";
import { logIn } from "./api.js";
import {
  board,
  boardAt,
  choose,
  connection,
  keepNotifying,
  mayAct,
  outdated,
  project,
  session,
  shutOut,
  start,
  store,
  stored,
  subscribe,
  waiting,
} from "./state.js";
import { Asked, Toasts } from "./parts.js";
import { Help, helping, here, route } from "./keys.js";
import { onKey } from "./press.js";
import { At } from "./writing.js";
import { Board, StatusLine } from "./views/board.js";
import { Inbox } from "./views/inbox.js";
import { ENDED, clock } from "./format.js";

const LISTS = /^#?\/?(board|inbox|search|events)?(\/|$)/;
const BOARD_IS_READ = 1500; // Milliseconds after an event.

// The first view needs no more than the board and the inbox; the rest is loaded when it is opened.
const VIEWS = {
  board: { part: Board, args: ([view]) => ({ view: ["columns", "tree", "graph"].includes(view) ? view : undefined }) },
  inbox: { part: Inbox },
  ticket: { load: () => import("./views/ticket.js"), name: "Ticket", args: ([id, tab]) => ({ id: Number(id), tab }) },
  new: { load: () => import("./views/forms.js"), name: "NewTicket", args: ([all]) => ({ all: all === "all" }) },
  agents: { load: () => import("./views/agents.js"), name: "Agents" },
  agent: { load: () => import("./views/agents.js"), name: "Agent", args: ([id]) => ({ id: decodeURIComponent(id) }) },
  mail: { load: () => import("./views/agents.js"), name: "Mail" },
  squad: { load: () => import("./views/squad.js"), name: "Squad" },
  chat: { load: () => import("./views/chat.js"), name: "Chat" },
  plans: { load: () => import("./views/plans.js"), name: "Plans" },
  plan: {
    load: () => import("./views/plans.js"),
    name: "Plan",
    args: ([id]) => ({ id: Number(id.replace(/^P/i, "")) }),
  },
  epic: { load: () => import("./views/epic.js"), name: "Epic", args: ([name]) => ({ name: decodeURIComponent(name) }) },
  queue: { load: () => import("./views/queue.js"), name: "Queue" },
  usage: { load: () => import("./views/usage.js"), name: "Usage", args: ([by]) => ({ by }) },
  projects: { load: () => import("./views/more.js"), name: "Projects" },
  models: { load: () => import("./views/models.js"), name: "Models" },
  teams: { load: () => import("./views/more.js"), name: "Teams" },
  events: { load: () => import("./views/more.js"), name: "Events" },
  search: { load: () => import("./views/search.js"), name: "Search" },
  machines: { load: () => import("./views/machines.js"), name: "Machines" },
  actions: {
    load: () => import("./views/actions.js"),
    name: "Actions",
    args: ([what, verb]) => ({ ...(/^\d+$/.test(what ?? "") ? { ticket: what } : { group: what }), verb }),
  },
  page: { load: () => import("./views/device.js"), name: "Devices" },
};
/** @type {[string, string, string?][]} */
const MAIN = [
  ["board", "Board"],
  ["squad", "At work"],
  ["inbox", "Inbox"],
  ["plans", "Plans"],
  ["chat", "Leader", "wide"],
  ["agents", "Agents", "wide"],
  ["queue", "Queue", "wide"],
];
/** @type {[string, string, string?][]} */
const MORE = [
  ["chat", "Leader", "narrow"],
  ["agents", "Agents", "narrow"],
  ["queue", "Queue", "narrow"],
  ["usage", "Usage"],
  ["search", "Search"],
  ["projects", "Projects"],
  ["models", "Models"],
  ["teams", "Teams"],
  ["machines", "Machines"],
  ["events", "Events"],
  ["actions", "All actions"],
  ["page", "This page"],
];

// Views that say by their place what they are, but not to a screen reader.
const UNTITLED = { board: "Board", squad: "At work", inbox: "Inbox", chat: "Leader", agents: "Agents", usage: "Usage" };

function Page() {
  if (shutOut.value) return html`<${Login} />`;
  if (!session.value && !board.value) return html`<p class="starting">Connecting to Legion</p>`;
  const [name, ...rest] = route();
  const view = VIEWS[name] ?? VIEWS.board;
  const open = VIEWS[name] ? name : "board";
  const args = view.args?.(rest) ?? {};
  // What was typed or opened for one ticket, plan or agent never shows at the next one.
  const key = `${open} ${args.id ?? args.name ?? args.ticket ?? ""}`;
  return html`<${Frame} open=${open}>
    <${At} value=${key} key=${key}><${View} view=${view} open=${open} args=${args} /></${At}>
  </${Frame}>`;
}

function View({ view, open, args }) {
  const [loaded, setLoaded] = useState(view.part ? { Part: view.part } : null);
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    if (!view.part)
      view.load().then(
        (module) => setLoaded({ Part: module[view.name] }),
        () => setFailed(true),
      );
  }, [view]);
  if (failed)
    return html`<p class="trouble" role="alert">
      This part could not be loaded. <button onClick=${() => location.reload()}>Reload</button>
    </p>`;
  const title = UNTITLED[open];
  return loaded && html`${title && html`<h1 class="unseen">${title}</h1>`}<${loaded.Part} ...${args} />`;
}

function Frame({ open, children }) {
  const all = waiting.value.length;
  const badges = { inbox: all, plans: waiting.value.filter((one) => one.kind === "plan").length };
  useEffect(() => {
    document.title = all ? `(${all}) Legion` : "Legion";
  }, [all]);
  const link = ([name, label, size = ""]) =>
    html`<a key=${name} class=${size} href=${`#/${name}`} aria-current=${open === name ? "page" : undefined}>
      ${label}${badges[name] > 0 && html` <span class="badge">${badges[name]}</span>`}
    </a>`;
  return html`
    <a class="skip" href="#main">Skip to the content</a>
    <header class="top">
      <a class="logo" href="#/board">Legion</a><${ProjectChoice} />
      <nav class="main" aria-label="Main">
        ${MAIN.map(link)}
        <details class="more">
          <summary>More</summary>
          <div onClick=${(event) => event.currentTarget.parentElement.removeAttribute("open")}>${MORE.map(link)}</div>
        </details>
      </nav>
      ${mayAct.value && html`<a class="button primary" href="#/new">New ticket</a>`}<${Connection} />
    </header>
    ${
      outdated.value &&
      html`<p class="banner">
        Legion is now version ${outdated.value}. <button onClick=${() => location.reload()}>Reload this page</button>
      </p>`
    }
    ${
      connection.value === "lost" &&
      html`<p class="banner bad" role="alert">
        Not connected to Legion: trying again. ${""}
        ${board.value && `This is what it knew at ${clock(boardAt.value / 1000)}.`}
      </p>`
    }
    <main id="main" tabindex="-1">${children}</main>
    <footer><${StatusLine} /></footer>
    <${Toasts} /><${Asked} />${helping.value && html`<${Help} />`}
  `;
}

const Connection = () =>
  html`<span class="connection ${connection.value}" role="status">
    <span class="dot"></span>${{ live: "live", lost: "not connected" }[connection.value] ?? "connecting"}
  </span>`;

function ProjectChoice() {
  const lines = board.value?.projects ?? [];
  if (lines.length < 2) return html`<span class="project-name">${lines[0]?.name}</span>`;
  return html`<select aria-label="Project" value=${project.value} onChange=${(event) => choose(event.target.value)}>
    <option value="">All projects</option>
    ${lines.map((one) => html`<option key=${one.root} value=${one.root}>${one.name}</option>`)}
  </select>`;
}

function Login() {
  const [fault, setFault] = useState("");
  const code = /^#code=(.+)$/.exec(location.hash)?.[1];
  useEffect(() => {
    if (code) exchange(code).catch((error) => setFault(error.message));
  }, [code]);
  return html`<main class="login">
    <h1>Legion</h1>
    ${
      code && !fault
        ? html`<p>Letting this browser in</p>`
        : html`
          <p>${fault || "This browser is not let in yet."}</p>
          <p>
            Run <code>legion web</code> on the machine where Legion runs, and open its link here. For a phone: <code>
              legion web --phone
            </code>
            .
          </p>
        `
    }
  </main>`;
}

async function exchange(code) {
  // The code is valid once: it does not stay in the address bar or in the history.
  history.replaceState(null, "", "/");
  await logIn(code, nameOfBrowser());
  here.value = "#/board";
  shutOut.value = "";
  await start();
}

function nameOfBrowser() {
  const agent = navigator.userAgent;
  const system =
    ["iPhone", "iPad", "Android", "Macintosh", "Windows", "Linux"].find((name) => agent.includes(name)) ?? "browser";
  const program = ["Firefox", "Edg", "Chrome", "Safari"].find((name) => agent.includes(name)) ?? "";
  return `${system.replace("Macintosh", "Mac")} ${program.replace("Edg", "Edge")}`.trim();
}

function theme(name) {
  if (name) document.documentElement.dataset.theme = name;
  else delete document.documentElement.dataset.theme;
  store("theme", name || null);
}

// Questions, failures and the end of all work, while the page is in the background.
function notify(batch) {
  if (!document.hidden || !("Notification" in window) || Notification.permission !== "granted") return;
  for (const one of batch) {
    const title = `Legion${one.ticket ? `: ticket ${one.ticket}` : ""}`;
    const failed = one.kind === "ticket.moved" && one.data.to === "failed";
    if (one.kind === "question.asked") show(title, "asks you something", `legion-${one.n}`, "#/inbox");
    else if (failed) show(title, "failed", `legion-${one.n}`, `#/ticket/${one.ticket}`);
  }
  if (batch.some((one) => one.kind === "ticket.moved" && ENDED.has(one.data.to)))
    setTimeout(notifyOfTheEnd, BOARD_IS_READ);
}

function show(title, body, tag, place) {
  const notice = new Notification(title, { body, tag });
  notice.onclick = () => {
    window.focus();
    location.hash = place;
  };
}

function notifyOfTheEnd() {
  if (document.hidden && board.value && board.value.tickets.every((one) => ENDED.has(one.state)))
    show("Legion", "all tickets have ended", "legion-end", "#/board");
}

theme(stored("theme", ""));
window.addEventListener("legion-theme", (event) => theme(event.detail));
const scrolled = new Map();
window.addEventListener("hashchange", ({ oldURL }) => {
  scrolled.set(new URL(oldURL).hash, window.scrollY);
  here.value = location.hash;
  // A link that lets a browser in, opened in a tab that shows Legion already: it starts anew with it.
  if (location.hash.startsWith("#code=")) location.reload();
  // A list is where it was left; what is opened begins at its top.
  const top = LISTS.test(location.hash) ? (scrolled.get(location.hash) ?? 0) : 0;
  requestAnimationFrame(() => window.scrollTo(0, top));
});
window.addEventListener("keydown", onKey);
subscribe(notify);
keepNotifying();
const root = /** @type {HTMLElement} */ (document.getElementById("page"));
root.replaceChildren();
render(html`<${Page} />`, root);
if (location.hash.startsWith("#code=")) shutOut.value = "This browser is not let in yet.";
else start();
if ("serviceWorker" in navigator) navigator.serviceWorker.register("/sw.js");
