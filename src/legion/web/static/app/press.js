// What a key does. An element with data-keys is pressed by these keys: what is selected comes first, then the view,
// then what holds everywhere. No key acts while something is written.
import { post } from "./api.js";
import { KEYS, LETTERS, helping, label, placesOf, route } from "./keys.js";
import { asked, confirmed, copy } from "./parts.js";
import { act, board, project, refresh, toast, toasts } from "./state.js";
import { isWriting, leaveBox, leaveWriting, textBox } from "./writing.js";

const VIEWS = { 1: "squad", 2: "board", 3: "inbox", 4: "agents", 5: "queue", 6: "usage" };
Object.assign(VIEWS, { n: "new", N: "new/all", w: "actions/tickets/by-hand", "Ctrl+P": "actions" });
const ELSEWHERE = { C: "board", D: "projects", H: "agents" };
// What a key does to a ticket that is selected elsewhere, or whose view has no such button: a tab, and a key that is
// pressed there.
const TICKET = { O: ["live"], f: ["diff"], i: ["live", "i"], o: ["terminal", "o"], e: ["terminal", "e"] };
for (const key of "rsxcdvmuB") TICKET[key] = ["live", key];
const FORMS = { b: "checkout", p: "push", S: "submit" };
const AGENT = "ixFdae";
const LINES = ".history li[tabindex], tr[tabindex], .project[tabindex]";
const ITEMS = `.card, .row, .wagon .item, .question, .at-work, .diff .no[aria-label]:not(:disabled), ${LINES}`;
const SELECTABLE = ".card, .row, .wagon, .question, .at-work, .history li, tr, .project[tabindex]";
const NAMES = { Escape: "Esc", " ": "Space", ArrowDown: "j", ArrowUp: "k", ArrowLeft: "h", ArrowRight: "l", F1: "?" };
const MOVES = new Set(["j", "k", "h", "l", "J", "K"]);
const PATIENCE = 3000; // Milliseconds until a view that was opened has its buttons.

const nameOf = (event) => (event.ctrlKey ? `Ctrl+${event.key.toUpperCase()}` : (NAMES[event.key] ?? event.key));
const main = () => document.getElementById("main");
/** @returns {any[]} */
const all = (selector, within = /** @type {ParentNode | null} */ (main())) => [
  ...(within?.querySelectorAll(selector) ?? []),
];
const visible = (element) => element.checkVisibility?.() ?? true;
const open = (place) => Boolean((location.hash = `#/${place}`));
const once = (message) => toasts.value.some((one) => one.message === message) || toast(message);

export function onKey(event) {
  if (event.ctrlKey && event.key === "q") leaveBox(); // The person leaves a terminal.
  if (event.defaultPrevented || event.isComposing || event.metaKey || event.altKey || asked.value) return;
  const name = nameOf(event);
  if (textBox(event.target) || isWriting()) {
    write(event, name);
    return;
  }
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
  if (name === "Esc") {
    event.preventDefault();
    leaveWriting();
  } else if (name === "Ctrl+S") {
    event.preventDefault();
    sendForm(event.target.closest("form") ?? innermost());
    leaveBox();
  } else if (!textBox(event.target) && event.key.length === 1 && !event.ctrlKey && !presses(event)) lost(event);
}

const presses = (event) => event.key === " " && event.target.matches?.("button, summary, input");
const innermost = () => all(".writing", document).pop();

// The box was closed by something else, in the middle of a word: the rest of the word acts on nothing.
function lost(event) {
  const box = innermost()?.querySelector("textarea, input");
  if (box) {
    box.focus();
    return;
  }
  event.preventDefault();
  once("The box that you wrote in was closed; your text is kept. Esc or a click, and keys act again.");
}

function handle(name) {
  if (helping.value || name === "?") {
    helping.value = helping.value ? name !== "Esc" && name !== "?" : true;
    return true;
  }
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
  else if (window.navigation?.canGoBack) stepBack();
  else open("board");
  return true;
}

// Not `history.back()`: pressed twice at once, that takes two steps, and the second may leave Legion.
function stepBack() {
  const { committed, finished } = window.navigation.back();
  // Another step overtook it.
  for (const step of [committed, finished]) step?.catch(() => {});
}

function selected() {
  return /** @type {any} */ (document.activeElement?.closest?.(SELECTABLE) ?? null);
}

// The element of this key: of what is selected, else of the view itself.
function button(name) {
  const item = selected();
  const these = all(`[data-keys~="${CSS.escape(name)}"]`).filter((one) => !one.disabled && visible(one));
  const inside = item && these.find((one) => item.contains(one));
  // A question that decides about the ticket of this view has its keys.
  const decides = route()[0] === "ticket" && /^[mbs]$/.test(name) && these.find((one) => one.closest(".question"));
  return inside ?? these.filter((one) => !one.closest(SELECTABLE)).pop() ?? decides;
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
  if (!(await confirmed(element.dataset.question ?? `${words}?`, element))) return;
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
  const links = all(ITEMS, document).filter(visible);
  const at = links.indexOf(document.activeElement);
  const last = links.length - 1;
  const to = { j: Math.min(last, at + 1), k: Math.max(0, at - 1), g: 0, G: last }[name];
  if (to !== undefined) return focus(links[to]);
  if (name === "J" || name === "K") return toFile(name === "J" ? 1 : -1);
  if (name === "c" && document.activeElement?.matches(".diff .no")) return press(document.activeElement);
  const filter = document.getElementById("filter");
  if (name === "/") return filter ? focus(filter) : open("search");
  if (route()[0] === "board" && (name === "h" || name === "l") && route()[1] !== "tree")
    return toColumn(name === "l" ? 1 : -1);
  if (name === "h" || name === "l" || name === "t") return toTab(name === "h" ? -1 : 1);
  return false;
}

function focus(element) {
  element?.focus({ focusVisible: true });
  element?.scrollIntoView({ block: "nearest" });
  return true;
}

function toFile(step) {
  const files = all(".file h2 button", document);
  const now = files.findIndex((one) => one.closest(".file").contains(document.activeElement));
  focus(files[Math.min(files.length - 1, Math.max(0, now + step))]);
  return files.length > 0;
}

function toColumn(step) {
  const columns = all(".column", document).filter((one) => one.querySelector(".card"));
  const now = columns.findIndex((one) => one.contains(document.activeElement));
  return focus(columns[Math.min(columns.length - 1, Math.max(0, now + step))]?.querySelector(".card"));
}

function toTab(step) {
  const tabs = all(".tabs a");
  const now = tabs.findIndex((one) => one.hasAttribute("aria-current"));
  if (tabs.length) tabs[(now + step + tabs.length) % tabs.length].click();
  return tabs.length > 0;
}

function toTicket(name) {
  const [view, id] = route();
  const item = selected();
  const its = item?.dataset.ticket ?? item?.querySelector("[data-ticket]")?.dataset.ticket;
  const number = its ?? (view === "ticket" ? id : undefined);
  if (!number) return false;
  if (name === "y") return copyNumber(number);
  if (FORMS[name]) return open(`actions/${number}/${FORMS[name]}`);
  if (!TICKET[name]) return false;
  const [tab, then] = TICKET[name];
  if (!(view === "ticket" && id === number && then === name && tab === "live" && name !== "i"))
    open(`ticket/${number}/${tab}`);
  if (then) pressLater(then, `ticket/${number}`, `${label("tickets", name)}: not possible for ticket ${number} now.`);
  return true;
}

function copyNumber(number) {
  copy(`#${number}`).then(
    () => toast(`#${number} is copied.`),
    () => toast("The browser lets no page copy.", "error"),
  );
  return true;
}

function toAgent(name) {
  const link = selected();
  if (route()[0] !== "agents" || !link?.getAttribute("href")?.startsWith("#/agent/") || !AGENT.includes(name))
    return false;
  location.hash = link.getAttribute("href");
  pressLater(name, link.getAttribute("href").slice(2), `${label("agents", name)}: not possible for it now.`);
  return true;
}

// Presses what a view that is being opened will have.
function pressLater(name, place, otherwise) {
  const until = Date.now() + PATIENCE;
  const look = () => {
    if (!`${location.hash}/`.startsWith(`#/${place}/`) || isWriting()) return;
    const found = main()?.querySelector(".path, .toolbar, .project") && button(name);
    const drawn = main()?.querySelector(".tabs, article .actions");
    if (found) press(found);
    else if (Date.now() < (drawn ? until - PATIENCE + 600 : until)) setTimeout(look, 50);
    else toast(otherwise);
  };
  setTimeout(look, 50);
}

function everywhere(name) {
  if (name === "R") return refresh() ?? true;
  if (name === "P") return pauseProject();
  const place = VIEWS[name] ?? ELSEWHERE[name] ?? (selected() ? undefined : LETTERS[name]);
  if (place) open(place);
  if (ELSEWHERE[name]) pressLater(name, place, `${label("everywhere", name)}: nothing to do.`);
  return Boolean(place);
}

// A key of the view itself never leads elsewhere, also while the view is being loaded.
const isOfThisView = (name) =>
  KEYS.some(([place, , key]) => key === name && place !== "tickets" && placesOf(route()[0]).includes(place));

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
