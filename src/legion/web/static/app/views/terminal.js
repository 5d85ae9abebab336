// The terminal of a ticket: sit down at its agent, only look, or a shell in its worktree.
import { html, useEffect, useRef, useState } from "../lib.js";
import { Empty } from "../parts.js";
import { isFull, session } from "../state.js";

const TOUCH = [
  ["Esc", "\x1b"],
  ["Tab", "\t"],
  ["Ctrl-C", "\x03"],
  ["Enter", "\r"],
  ["↑", "\x1b[A"],
  ["↓", "\x1b[B"],
];
const WORDS = {
  agent:
    "What you type goes to its agent. An agent that works alone is interrupted between two steps; when you leave, it " +
    "continues alone.",
  shell: "A shell in its worktree, inside the sandbox of its agent. It ends when you leave.",
  look: "You only look: nothing is interrupted, and nothing that you type is sent.",
};

// Which terminal this tab has open, so that it opens again after a reload. A link cannot open one.
const place = (id) => `legion.terminal.${id}`;
function remembered(id) {
  try {
    return JSON.parse(sessionStorage.getItem(place(id)));
  } catch {
    return null;
  }
}
function remember(id, what) {
  try {
    if (what) sessionStorage.setItem(place(id), JSON.stringify(what));
    else sessionStorage.removeItem(place(id));
  } catch {
    /* a browser that keeps nothing: a reload starts with the choice */
  }
}

export function TicketTerminal({ page, id }) {
  const [open, setOpen] = useState(() => remembered(id));
  const choose = (what) => {
    remember(id, what);
    setOpen(what);
  };
  if (!session.value) return null;
  if (open && (isFull.value || open.kind === "look"))
    return html`<${Opened} key=${open.kind} id=${id} open=${open} leave=${() => choose(null)} />`;
  const working = page.ticket.state === "working";
  const choice = (kind, words, more) => html`<p>
    <button onClick=${() => choose({ kind })} ...${more}>${words}</button> <span class="hint">${WORDS[kind]}</span>
  </p>`;
  const none = !working && !page.worktree && "No agent works on it, and it has no worktree: there is no terminal.";
  const closed = "This device cannot type into a terminal: it may only look, or its network is not encrypted.";
  return html`<section class="terminals">
    ${isFull.value && working && choice("agent", "Sit down at its agent", { class: "primary", "data-keys": "o" })}
    ${working && choice("look", "Only look")}
    ${isFull.value && page.worktree && choice("shell", "Open a shell", { "data-keys": "e" })}
    ${none && html`<${Empty}>${none}</${Empty}>`}${!isFull.value && html`<p class="hint">${closed}</p>`}
  </section>`;
}

// The seconds since it began, counted while it lasts.
function useSeconds(lasts) {
  const [passed, setPassed] = useState(0);
  useEffect(() => {
    if (!lasts) return undefined;
    const began = Date.now();
    const timer = setInterval(() => setPassed(Math.floor((Date.now() - began) / 1000)), 1000);
    return () => {
      clearInterval(timer);
      setPassed(0);
    };
  }, [lasts]);
  return passed;
}

function Opened({ id, open, leave }) {
  const box = useRef(null);
  const held = useRef(null);
  const left = useRef(false);
  const [state, setState] = useState({ news: "connecting", message: "Connecting" });
  const seconds = useSeconds(state.news === "waiting");
  const go = () => {
    left.current = true;
    leave();
  };
  useEffect(() => {
    let gone = false;
    box.current.parentElement.scrollIntoView();
    const report = (one) => {
      if (one.run) remember(id, { ...open, run: one.run });
      if (["ended", "refused", "none"].includes(one.news)) remember(id, null);
      if (!gone) setState(one);
    };
    import("../terminal.js")
      .then(async ({ loadStyle, openTerminal }) => {
        await loadStyle();
        if (gone) return;
        held.current = openTerminal(
          box.current,
          {
            ticket: id,
            kind: open.kind === "shell" ? "shell" : "agent",
            onlyLooks: open.kind === "look",
            run: open.run,
          },
          report,
        );
        if (open.kind !== "shell") held.current.onLeaveKey(go);
      })
      .catch(() => setState({ news: "refused", message: "The terminal could not be loaded: reload this page." }));
    return () => {
      gone = true;
      held.current?.close(left.current);
    };
  }, [id]);
  const over = ["ended", "refused", "none"].includes(state.news);
  const words =
    {
      open:
        open.kind === "agent" && !state.wheel
          ? "What you type goes to its agent; it stays open when you leave."
          : WORDS[open.kind],
      waiting: `${state.message}, ${seconds} s. It works on alone when you give up.`,
    }[state.news] ?? state.message;
  return html`<section class="terminal">
    <div class="toolbar">
      <button onClick=${go}>${over ? "Close" : state.news === "waiting" ? "Give up" : "Leave"}</button>
      <span class="hint" role="status">${words}</span>
    </div>
    <div class="screen" ref=${box} data-news=${state.news}></div>
    ${
      open.kind !== "look" &&
      !over &&
      html`<div role="toolbar" class="toolbar touch" aria-label="Keys">
        ${TOUCH.map(
          ([name, text]) => html`<button key=${name} onClick=${() => held.current?.type(text)}>${name}</button>`,
        )}
      </div>`
    }
  </section>`;
}
