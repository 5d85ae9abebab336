// The keys of the page: those of the terminal UI, by the same names, as far as a browser leaves them to a page.
import { html, signal } from "./lib.js";

// The place that is shown. The address is ahead of it until the browser says that it moved.
export const here = signal(location.hash);
export const helping = signal(false);

// Place, the terminal UI's name of the action, key, what it does. A test compares them with the terminal UI.
/** @type {[string, string, string, string][]} */
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
// Views with keys of their own, the board first; a ticket is in several.
const TICKETS = ["squad", "board", "search", "epic", "ticket", "queue"];
const OWN = { agent: "agents", new: "form", squad: "", search: "", epic: "" };
export const placesOf = (view) => [OWN[view] ?? view, TICKETS.includes(view) && "tickets"].filter(Boolean);
// Where nothing is selected, these lead to views that the terminal UI has no key for.
export const LETTERS = { b: "board", i: "inbox", p: "plans", c: "chat", a: "agents", u: "usage", x: "actions" };
const NAMES = { list: "Lists", tickets: "The selected ticket", diff: "Change" };
export const label = (place, key) => KEYS.find((one) => one[0] === place && one[2] === key)?.[3] ?? key;
export const route = () => here.value.replace(/^#\/?/, "").split("/");
const close = () => {
  helping.value = false;
};

export function Help() {
  const [view, , tab] = route();
  const places = [...placesOf(view || "board"), view === "ticket" && tab, "list", "everywhere"];
  const line = ([, action, key, what]) => html`<div key=${action}><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`;
  const part = (place) => {
    const own = KEYS.filter((one) => one[0] === place);
    const name = NAMES[place] ?? `${place[0].toUpperCase()}${place.slice(1)}`;
    return own.length > 0 && html`<h2 key=${place}>${name}</h2><dl class="facts keys">${own.map(line)}</dl>`;
  };
  const letter = ([key, place], n) => html`${n ? ", " : ""}<kbd>${key}</kbd> ${place}`;
  return html`<div class="help" role="dialog" aria-label="Keys">
    <button onClick=${close}>Close</button>${places.map((place) => place && part(place))}
    <p class="hint">Where nothing is selected, ${Object.entries(LETTERS).map(letter)}.</p>
  </div>`;
}
