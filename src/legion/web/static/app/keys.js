// The keys of the page: those of the terminal UI, by the same names, as far as a browser leaves them to a page.
// An element with data-keys is pressed by these keys. What is selected comes first, then the view, then what holds everywhere.
import { html, signal } from "./lib.js";
import { post } from "./api.js";
import { asked, confirmed, copy } from "./parts.js";
import { act, board, project, refresh, toast, toasts } from "./state.js";
import { isWriting, leaveBox, leaveWriting, textBox } from "./writing.js";

export const helping = signal(false);

// Place, the terminal UI's name of the action, key, what it does. A test compares them with the terminal UI.
export const KEYS = [
  ["everywhere", "squad", "1", "agents at work"],
  ["everywhere", "board", "2", "board"],
  ["everywhere", "inbox", "3", "inbox"],
  ["everywhere", "agents", "4", "agents"],
  ["everywhere", "queue", "5", "merge queue"],
  ["everywhere", "usage", "6", "usage"],
  ["everywhere", "menu", "Ctrl+P", "all actions"],
  ["everywhere", "help", "?", "these keys"],
  ["everywhere", "go_back", "Esc", "back"],
  ["everywhere", "new_ticket", "n", "new ticket"],
  ["everywhere", "new_ticket_full", "N", "new ticket, all fields"],
  ["everywhere", "new_by_hand", "w", "work together with an agent"],
  ["everywhere", "hire", "H", "hire an agent"],
  ["everywhere", "collect", "C", "collect landed changes"],
  ["everywhere", "pause_project", "P", "pause the project, or resume it"],
  ["everywhere", "clear_ended", "D", "clear ended tickets"],
  ["everywhere", "refresh", "R", "read everything again"],
  ["list", "down", "j", "next"],
  ["list", "up", "k", "previous"],
  ["list", "first", "g", "first"],
  ["list", "last", "G", "last"],
  ["list", "choose", "Enter", "open"],
  ["tickets", "open", "O", "open it"],
  ["tickets", "diff", "f", "its change"],
  ["tickets", "message", "i", "message to its agent"],
  ["tickets", "retry", "r", "retry or resume"],
  ["tickets", "stop", "s", "stop"],
  ["tickets", "interrupt", "x", "interrupt"],
  ["tickets", "pause", "c", "pause"],
  ["tickets", "drop", "d", "drop"],
  ["tickets", "review", "v", "request a review"],
  ["tickets", "land", "m", "land it"],
  ["tickets", "undo", "u", "undo"],
  ["tickets", "attach", "o", "sit down at its agent"],
  ["tickets", "shell", "e", "shell in its worktree"],
  ["tickets", "checkout", "b", "its work as a branch"],
  ["tickets", "push", "p", "push its work"],
  ["tickets", "submit", "S", "submit work by hand"],
  ["tickets", "check", "B", "run all checks"],
  ["tickets", "copy", "y", "copy its number"],
  ["board", "filter", "/", "filter"],
  ["board", "mode", "t", "columns, tree, graph"],
  ["board", "left", "h", "column on the left"],
  ["board", "right", "l", "column on the right"],
  ["ticket", "next_tab", "l", "next tab"],
  ["ticket", "previous_tab", "h", "previous tab"],
  ["diff", "comment", "c", "comment on this line"],
  ["diff", "send_back", "b", "send back with all comments"],
  ["diff", "fold", "Space", "fold the file"],
  ["diff", "next_file", "J", "next file"],
  ["diff", "previous_file", "K", "previous file"],
  ["history", "rewind", "R", "return to this moment"],
  ["inbox", "yes", "y", "yes, or the first choice"],
  ["inbox", "no", "n", "no, or the second choice"],
  ["inbox", "answer", "e", "answer in words"],
  ["inbox", "yes_to_all", "A", "yes to all alike"],
  ["inbox", "open_ticket", "o", "its ticket"],
  ["agents", "tell", "i", "message"],
  ["agents", "interrupt_agent", "x", "interrupt"],
  ["agents", "fire", "F", "fire"],
  ["agents", "delegate", "d", "only lead, or work again"],
  ["agents", "approve", "a", "approve its plan"],
  ["agents", "reject", "e", "reject its plan"],
  ["queue", "undo_landed", "u", "undo a landed change"],
  ["usage", "next_cut", "t", "next grouping"],
  ["usage", "previous_cut", "h", "previous grouping"],
  ["models", "add", "a", "add a provider"],
  ["models", "test", "t", "test it"],
  ["models", "remove", "d", "remove it"],
  ["machines", "update", "u", "update it"],
  ["machines", "pause_machine", "p", "pause it, or resume it"],
  ["machines", "remove_machine", "d", "remove it"],
  ["form", "send", "Ctrl+S", "send the form"],
  ["form", "leave", "Esc", "leave the field"],
];
const PLACES = { squad: ["tickets"], board: ["board", "tickets"], search: ["tickets"], epic: ["tickets"], ticket: ["ticket", "tickets"], inbox: ["inbox"], agents: ["agents"], agent: ["agents"], queue: ["queue", "tickets"], usage: ["usage"], models: ["models"], machines: ["machines"], new: ["form"] };
const TABS = { diff: "diff", history: "history" };
// Where nothing is selected, these lead to views that the terminal UI has no key for.
const LETTERS = { b: "board", i: "inbox", p: "plans", c: "chat", a: "agents", u: "usage", x: "actions" };
const VIEWS = { 1: "squad", 2: "board", 3: "inbox", 4: "agents", 5: "queue", 6: "usage", n: "new", N: "new/all", w: "actions/tickets/by-hand", "Ctrl+P": "actions" };
const ELSEWHERE = { C: "board", D: "projects", H: "agents" };
// What a key does to a ticket that is selected elsewhere, or whose view has no such button: a tab, and a key that is pressed there.
const TICKET = { O: ["live"], f: ["diff"], i: ["live", "i"], o: ["terminal", "o"], e: ["terminal", "e"], ...Object.fromEntries([..."rsxcdvmuB"].map((key) => [key, ["live", key]])) };
const FORMS = { b: "checkout", p: "push", S: "submit" };
const AGENT = "ixFdae";
const ITEMS = ".card, .row, .wagon .item, .question, .at-work, .diff .no[aria-label]:not(:disabled), .history li[tabindex], tr[tabindex], .project[tabindex]";
const SELECTABLE = ".card, .row, .wagon, .question, .at-work, .history li, tr, .project[tabindex]";
const NAMES = { Escape: "Esc", " ": "Space", ArrowDown: "j", ArrowUp: "k", ArrowLeft: "h", ArrowRight: "l", F1: "?" };
const MOVES = new Set(["j", "k", "h", "l", "J", "K"]);
const PATIENCE = 3000; // Milliseconds until a view that was opened has its buttons.

const nameOf = (event) => (event.ctrlKey ? `Ctrl+${event.key.toUpperCase()}` : NAMES[event.key] ?? event.key);
const main = () => document.getElementById("main");
const route = () => location.hash.replace(/^#\/?/, "").split("/");
const visible = (element) => element.checkVisibility?.() ?? true;
const open = (place) => { location.hash = `#/${place}`; };
const once = (message) => { if (!toasts.value.some((one) => one.message === message)) toast(message); };

export function onKey(event) {
  if (event.ctrlKey && event.key === "q") leaveBox(); // The person leaves a terminal.
  if (event.defaultPrevented || event.isComposing || event.metaKey || event.altKey || asked.value) return;
  const name = nameOf(event);
  if (textBox(event.target) || isWriting()) { write(event, name); return; }
  if (event.repeat && !MOVES.has(name)) return;
  if (event.ctrlKey && !["Ctrl+P", "Ctrl+S"].includes(name)) return;
  // A focused button or link keeps the keys that press it, and arrows scroll where nothing is selected.
  if (event.key === "Enter" || event.key === " " || (event.key.startsWith("Arrow") && !selected())) return;
  if (handle(name)) event.preventDefault();
}

// While something is written, a key is text: only these two do more.
function write(event, name) {
  if (event.target.closest?.(".xterm")) return;
  // A search field would empty itself.
  if (name === "Esc") { event.preventDefault(); leaveWriting(); }
  else if (name === "Ctrl+S") { event.preventDefault(); sendForm(event.target.closest("form") ?? innermost()); leaveBox(); }
  else if (!textBox(event.target) && event.key.length === 1 && !event.ctrlKey && !presses(event)) lost(event);
}

const presses = (event) => event.key === " " && event.target.matches?.("button, summary, input");
const innermost = () => [...document.querySelectorAll(".writing")].pop();

// The box was closed by something else, in the middle of a word: the rest of the word acts on nothing.
function lost(event) {
  const box = innermost()?.querySelector("textarea, input");
  if (box) { box.focus(); return; }
  event.preventDefault();
  once("The box that you wrote in was closed; your text is kept. Esc or a click, and keys act again.");
}

function handle(name) {
  if (helping.value) { if (name === "Esc" || name === "?") helping.value = false; return true; }
  if (name === "?") { helping.value = true; return true; }
  if (name === "Esc") return goBack();
  if (name === "Ctrl+S") return sendForm(document.querySelector("main form"));
  const found = button(name);
  if (found) return press(found);
  if (moves(name) || toTicket(name) || toAgent(name)) return true;
  if (selected() || !isOfThisView(name)) return everywhere(name);
  toast("Select one first, with j and k or by a click.");
  return true;
}

function goBack() {
  const more = document.querySelector("details.more[open]");
  if (more) more.removeAttribute("open");
  else if (leaveWriting()) return true;
  else if (window.navigation?.canGoBack) history.back();
  else open("board");
  return true;
}

function selected() {
  return document.activeElement?.closest?.(SELECTABLE) ?? null;
}

// The element of this key: of what is selected, else of the view itself.
function button(name) {
  const item = selected();
  const all = [...(main()?.querySelectorAll(`[data-keys~="${CSS.escape(name)}"]`) ?? [])].filter((one) => !one.disabled && visible(one));
  const inside = item && all.find((one) => item.contains(one));
  // A question that decides about the ticket of this view has its keys.
  const decides = route()[0] === "ticket" && /^[mbs]$/.test(name) && all.find((one) => one.closest(".question"));
  return inside ?? all.filter((one) => !one.closest(SELECTABLE)).pop() ?? decides;
}

// A key opens and moves by itself; whatever else it presses asks first.
function press(element) {
  if (textBox(element)) element.focus();
  else if (element.matches("a, [aria-expanded], [data-asks]")) element.click();
  else pressAsked(element);
  return true;
}

async function pressAsked(element) {
  const words = element.textContent;
  if (!await confirmed(element.dataset.question ?? `${words}?`, element)) return;
  if (element.isConnected && !element.disabled && element.textContent === words) element.click();
  else toast(`${words}: not possible any more.`);
}

function sendForm(place) {
  const form = place?.closest("form, .writing, .answers");
  const send = form?.querySelector("button.primary:not(:disabled), button:not([type=button]):not(:disabled)");
  if (send) send.click();
  return Boolean(form);
}

function moves(name) {
  const links = [...document.querySelectorAll(ITEMS)].filter(visible);
  const at = links.indexOf(document.activeElement);
  const last = links.length - 1;
  const to = { j: Math.min(last, at + 1), k: Math.max(0, at - 1), g: 0, G: last }[name];
  if (to !== undefined) { focus(links[to]); return true; }
  if (name === "J" || name === "K") return toFile(name === "J" ? 1 : -1);
  if (name === "c" && document.activeElement?.matches(".diff .no")) return press(document.activeElement);
  if (name === "/") { const field = document.getElementById("filter"); if (field) field.focus(); else open("search"); return true; }
  if (route()[0] === "board" && (name === "h" || name === "l") && route()[1] !== "tree") return toColumn(name === "l" ? 1 : -1);
  if (name === "h" || name === "l" || name === "t") return toTab(name === "h" ? -1 : 1);
  return false;
}

function focus(element) {
  element?.focus({ focusVisible: true });
  element?.scrollIntoView({ block: "nearest" });
}

function toFile(step) {
  const files = [...document.querySelectorAll(".file h2 button")];
  const now = files.findIndex((one) => one.closest(".file").contains(document.activeElement));
  focus(files[Math.min(files.length - 1, Math.max(0, now + step))]);
  return files.length > 0;
}

function toColumn(step) {
  const columns = [...document.querySelectorAll(".column")].filter((one) => one.querySelector(".card"));
  const now = columns.findIndex((one) => one.contains(document.activeElement));
  focus(columns[Math.min(columns.length - 1, Math.max(0, now + step))]?.querySelector(".card"));
  return true;
}

function toTab(step) {
  const tabs = [...(main()?.querySelectorAll(".tabs a") ?? [])];
  const now = tabs.findIndex((one) => one.hasAttribute("aria-current"));
  if (tabs.length) tabs[(now + step + tabs.length) % tabs.length].click();
  return tabs.length > 0;
}

function toTicket(name) {
  const [view, id] = route();
  const item = selected();
  const number = item?.dataset.ticket ?? item?.querySelector("[data-ticket]")?.dataset.ticket ?? (view === "ticket" ? id : undefined);
  if (!number) return false;
  if (name === "y") return copyNumber(number);
  if (FORMS[name]) { open(`actions/${number}/${FORMS[name]}`); return true; }
  if (!TICKET[name]) return false;
  const [tab, then] = TICKET[name];
  if (!(view === "ticket" && id === number && then === name && tab === "live" && name !== "i")) open(`ticket/${number}/${tab}`);
  if (then) pressLater(then, `ticket/${number}`, `${label("tickets", name)}: not possible for ticket ${number} now.`);
  return true;
}

function copyNumber(number) {
  copy(`#${number}`).then(() => toast(`#${number} is copied.`), () => toast("The browser lets no page copy.", "error"));
  return true;
}

function toAgent(name) {
  const link = selected();
  if (route()[0] !== "agents" || !link?.getAttribute("href")?.startsWith("#/agent/") || !AGENT.includes(name)) return false;
  location.hash = link.getAttribute("href");
  pressLater(name, link.getAttribute("href").slice(2), `${label("agents", name)}: not possible for it now.`);
  return true;
}

const label = (place, key) => KEYS.find((one) => one[0] === place && one[2] === key)?.[3] ?? key;

// Presses what a view that is being opened will have.
function pressLater(name, place, otherwise) {
  const until = Date.now() + PATIENCE;
  const look = () => {
    if (!`${location.hash}/`.startsWith(`#/${place}/`) || isWriting()) return;
    const found = main()?.querySelector(".path, .toolbar, .project") && button(name);
    if (found) press(found);
    else if (Date.now() < until && !main()?.querySelector(".tabs, article .actions")) setTimeout(look, 50);
    else if (Date.now() < until - PATIENCE + 600) setTimeout(look, 50);
    else toast(otherwise);
  };
  setTimeout(look, 50);
}

function everywhere(name) {
  if (name === "R") { refresh(); return true; }
  if (name === "P") return pauseProject();
  if (VIEWS[name]) { open(VIEWS[name]); return true; }
  if (ELSEWHERE[name]) { open(ELSEWHERE[name]); pressLater(name, ELSEWHERE[name], `${label("everywhere", name)}: nothing to do.`); return true; }
  if (LETTERS[name] && !selected()) { open(LETTERS[name]); return true; }
  return false;
}

// A key of the view itself never leads elsewhere, also while the view is being loaded.
const isOfThisView = (name) => KEYS.some(([place, , key]) => key === name && place !== "tickets" && PLACES[route()[0]]?.includes(place));

function pauseProject() {
  const lines = board.value?.projects ?? [];
  const line = lines.find((one) => one.root === project.value) ?? (lines.length === 1 ? lines[0] : null);
  if (line) setPaused(line);
  else toast("Choose a project first.");
  return true;
}

async function setPaused({ paused, root, name }) {
  const asks = paused ? `Resume ${name}?` : `Pause ${name}? Nothing new starts then.`;
  if (await confirmed(asks)) act(() => post(`/v1/project/${paused ? "resume" : "pause"}`, { cwd: root }));
}

export function Help() {
  const [view, , tab] = route();
  const places = [...(PLACES[view || "board"] ?? []), ...(view === "ticket" && TABS[tab] ? [TABS[tab]] : []), "list", "everywhere"];
  const titles = { everywhere: "Everywhere", list: "Lists", tickets: "The selected ticket", board: "Board", ticket: "Ticket", diff: "Change", history: "History", inbox: "Inbox", agents: "Agents", queue: "Queue", usage: "Usage", models: "Models", machines: "Machines", form: "Form" };
  return html`<div class="help" role="dialog" aria-label="Keys"><button onClick=${() => { helping.value = false; }}>Close</button>${places.map((place) => html`<h2 key=${place}>${titles[place]}</h2><dl class="facts keys">${KEYS.filter((one) => one[0] === place).map(([, action, key, what]) => html`<div key=${action}><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`)}</dl>`)}
    <p class="hint">Where nothing is selected, ${Object.entries(LETTERS).map(([key, place], n) => html`${n ? ", " : ""}<kbd>${key}</kbd> ${place}`)}.</p></div>`;
}
