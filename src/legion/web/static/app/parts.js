// Small parts that all views use.
import { html, signal, useEffect, useLayoutEffect, useRef, useState } from "./lib.js";
import { post } from "./api.js";
import { act, dismiss, mayAct, toasts } from "./state.js";
import { Writing, useDraft } from "./writing.js";
import { STATES, ago, plural, stateClass } from "./format.js";
import { nameOf } from "./odd.js";

export const State = ({ of }) => html`<span class="state ${stateClass(of)}">${(STATES[of] ?? [of])[0]}</span>`;

const BASELINES = {
  green: ["checks pass", "good"],
  red: ["checks fail", "bad"],
  none: ["no checks", "quiet"],
  unknown: ["not checked yet", "quiet"],
};

// The result of the project's checks on its target branch itself.
export function Baseline({ of }) {
  const [text, kind] = BASELINES[of] ?? [`checks: ${of}`, "bad"];
  return html`<span class="state ${kind}">${text}</span>`;
}

export const Empty = ({ children }) => html`<p class="empty">${children}</p>`;

// Each of these shows nothing where its text is empty.
export const Badge = ({ of, kind = "quiet" }) => of && html`<span class="state ${kind}">${of}</span>`;
export const Flag = ({ of, kind = "" }) => of && html`<span class="flag ${kind}">${of}</span>`;
export const Hint = ({ of, title }) => of && html`<span class="hint" title=${title}>${of}</span>`;
export const Step = ({ of, kind = "needs" }) => of && html`<p class="step ${kind}">${of}</p>`;
export const Items = ({ name, of, row, className }) =>
  of.length > 0 &&
  html`
    ${name && html`<h2>${name}</h2>`}
    <ul class=${className}>${of.map((one, n) => html`<li key=${n}>${row(one)}</li>`)}</ul>
  `;
export const Output = ({ of, label, kind = "short" }) =>
  html`<pre role="region" class="output ${kind}" tabindex="0" aria-label=${label}>${of || "No output yet."}</pre>`;
export const Working = ({ of }) => html`<${Badge} of=${of ? "at work" : "idle"} kind=${of ? "busy" : "quiet"} />`;

// Columns are [heading, what a row has there]; `row` gives the attributes of a row.
export const Table = ({ of, columns, row = (/** @type {any} */ _) => ({}), className }) =>
  html`<table class=${className}>
    <thead>
      <tr>${columns.map(([name]) => html`<th key=${name}>${name || html`<span class="unseen">Acts</span>`}</th>`)}</tr>
    </thead>
    <tbody>
      ${of.map(
        (one, n) => html`<tr key=${n} ...${row(one)}>
          ${columns.map(([name, cell]) => html`<td key=${name}>${cell(one)}</td>`)}
        </tr>`,
      )}
    </tbody>
  </table>`;

export const TicketLink = ({ id, children }) => id > 0 && html`<a href=${`#/ticket/${id}`}>#${id}${children}</a>`;

// Tickets as lines. `about` is what stands behind the title.
export const TicketRow = ({ one, about, style }) =>
  html`<a class="row" href=${`#/ticket/${one.id}`} data-ticket=${one.id} style=${style}>
    <span class="number">#${one.id}</span><${State} of=${one.state} /><span class="title">${one.title}</span>${about}
  </a>`;

export const Trouble = ({ error }) => error && html`<p class="trouble" role="alert">${error.message}</p>`;

// A button that runs an action. With `ask`, the first press asks once.
export function Act({ run, ask, kind = "", children, title, disabled, keys }) {
  const [busy, setBusy] = useState(false);
  const go = async (event) => {
    if (ask && !(await confirmed(ask, event.currentTarget))) return;
    setBusy(true);
    await act(run);
    setBusy(false);
  };
  if (!mayAct.value) return null;
  return html`<button class=${kind} title=${title} data-keys=${keys} data-asks=${ask ? "" : undefined}
    disabled=${disabled || busy} aria-busy=${busy} onClick=${go}>
    ${children}
  </button>`;
}

// The acts of a thing as buttons: { offer, words, at, body, keys, kind, ask, run, disabled }. An act with `offer`, the
// name of an operation, is shown while the daemon offers it; what is drawn already keeps its place.
export const Acts = ({ of, offers = [], children, as = "div" }) => {
  const act = (one) => {
    const run = () => post(one.at, one.body ?? {}, { waits: true });
    return one.words ? html`<${Act} key=${one.words} run=${run} ...${one}>${one.words}</${Act}>` : one;
  };
  const shown = of.filter((one) => one && (!one.offer || offers.includes(one.offer)));
  return html`<${as} class="actions">${shown.map(act)}${children}</${as}>`;
};

// A button that opens or closes what is written or read below it.
export const Opener = ({ open, toggle, keys, kind = "", children }) =>
  html`<button class=${kind} data-keys=${keys} aria-expanded=${open} onClick=${toggle}>${children}</button>`;

export const asked = signal(/** @type {any} */ (null));
const A_MOMENT = 600; // Milliseconds: longer than the pause between two letters of a person who types.

// Asks the person once, by the name of what `element` is about.
export function confirmed(text, element) {
  asked.value?.choose(false);
  const about = element?.closest?.("[data-what]")?.dataset.what ?? "";
  return new Promise((resolve) => {
    asked.value = {
      text,
      about,
      choose: (yes) => {
        asked.value = null;
        resolve(yes);
      },
    };
  });
}

// The one question of the page. No key that was pressed before it, and none within a moment after, confirms it.
export function Asked() {
  const one = asked.value;
  const box = useRef(null);
  const [ready, setReady] = useState(false);
  useLayoutEffect(() => {
    if (!one) {
      if (box.current.open) box.current.close();
      return undefined;
    }
    box.current.showModal();
    box.current.focus();
    let timer = 0;
    const wait = () => {
      setReady(false);
      clearTimeout(timer);
      timer = setTimeout(() => setReady(true), A_MOMENT);
    };
    wait();
    const quiet = (event) => {
      if (event.key !== "Tab") wait();
    };
    window.addEventListener("keydown", quiet);
    return () => {
      clearTimeout(timer);
      setReady(false);
      window.removeEventListener("keydown", quiet);
    };
  }, [one]);
  const onKey = (event) => {
    if (event.key === "Tab" || event.ctrlKey || event.metaKey || event.altKey) return;
    const onButton = event.target.tagName === "BUTTON" && (event.key === "Enter" || event.key === " ");
    if (onButton && !event.repeat) return;
    event.preventDefault();
    if (event.key === "y" && ready && !event.repeat) one.choose(true);
    else if (!/^(y|Enter| |Shift|Control|Alt|Meta)$/.test(event.key)) one.choose(false);
  };
  return html`<dialog ref=${box} class="asking" tabindex="-1" aria-label="Question"
    data-ready=${ready ? "" : undefined} onKeyDown=${one && onKey} onCancel=${() => one?.choose(false)}>
    ${
      one &&
      html`
        <p>${one.text}</p>
        ${one.about && html`<p class="title">${one.about}</p>`}
        <div class="thumbs">
          <button class="danger" onClick=${() => one.choose(true)}>Yes <kbd>y</kbd></button>
          <button onClick=${() => one.choose(false)}>No <kbd>n</kbd></button>
        </div>
      `
    }
  </dialog>`;
}

// One line of text that is sent with Enter. `to` tells two lines of a view apart.
export function Line({ label, send, placeholder, keys, verb = "Send", to = "" }) {
  const [text, setText, sent] = useDraft(`${to} ${label}`);
  const [busy, setBusy] = useState(false);
  const submit = async (event) => {
    event.preventDefault();
    if (!text.trim() || busy) return;
    setBusy(true);
    if (await act(() => send(text.trim()))) sent(text);
    setBusy(false);
  };
  if (!mayAct.value) return null;
  return html`<form class="line" onSubmit=${submit}>
    <input aria-label=${label} data-keys=${keys} placeholder=${placeholder ?? label} value=${text}
      onInput=${(event) => setText(event.target.value)} />
    <button disabled=${!text.trim() || busy}>${verb}</button>
  </form>`;
}

// A text of several lines that opens by an act of the person. `to` tells two of a view apart.
export function Say({ label, send, close, verb = "Send", to = "" }) {
  const [text, setText, sent] = useDraft(`${to} ${label}`);
  const go = async () => {
    const done = await send(text.trim());
    if (!sent(text)) close();
    return done;
  };
  return html`<${Writing} className="say" close=${close}>
    <textarea rows="3" aria-label=${label} placeholder=${label} value=${text}
      onInput=${(event) => setText(event.target.value)}></textarea>
    <div class="actions"><${Act} kind="primary" run=${go}>${verb}</${Act}><button onClick=${close}>Cancel</button></div>
  </${Writing}>`;
}

export function Tabs({ names, now, base, label: name = "Parts" }) {
  return html`<nav class="tabs" aria-label=${name}>
    ${names.map(
      ([key, label]) => html`<a href=${`${base}/${key}`} key=${key} aria-current=${key === now ? "page" : undefined}>
        ${label}
      </a>`,
    )}
  </nav>`;
}

export function Facts({ of }) {
  const shown = Object.entries(of).filter(
    ([, value]) => value !== "" && value !== null && value !== undefined && value !== false,
  );
  return (
    shown.length > 0 &&
    html`<dl class="facts">
      ${shown.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
    </dl>`
  );
}

// A warning of characters that are not seen, by their codes.
export function Odd({ in: codes, where }) {
  const kinds = [...new Set(codes)];
  return (
    codes.length > 0 &&
    html`<p class="trouble" role="alert">
      <b>${where} adds ${plural(codes.length, "character")} that you cannot see or that change the order of others</b>
      : ${kinds
        .slice(0, 8)
        .map((one) => `${one} ${nameOf(one)}`)
        .join(", ")}
      . They are marked; read the code as it is marked.
    </p>`
  );
}

// A list of which only the visible part is in the document: ten thousand rows scroll like ten.
export function Rows({ items, height, row, className = "" }) {
  const box = useRef(null);
  const [view, setView] = useState({ top: 0, size: 800 });
  const measure = () => {
    const element = box.current;
    if (!element) return;
    const top = Math.max(0, -element.getBoundingClientRect().top);
    setView((old) =>
      Math.abs(old.top - top) < height && old.size === window.innerHeight ? old : { top, size: window.innerHeight },
    );
  };
  useEffect(() => {
    measure();
    window.addEventListener("scroll", measure, { passive: true });
    window.addEventListener("resize", measure);
    return () => {
      window.removeEventListener("scroll", measure);
      window.removeEventListener("resize", measure);
    };
  }, []);
  const first = Math.max(0, Math.floor(view.top / height) - 10);
  const last = Math.min(items.length, Math.ceil((view.top + view.size) / height) + 10);
  return html`<div ref=${box} class=${className}
    style=${{ paddingTop: `${first * height}px`, paddingBottom: `${(items.length - last) * height}px` }}>
    ${items.slice(first, last).map(row)}
  </div>`;
}

export const Toasts = () =>
  html`<div class="toasts" role="status" aria-live="polite">
    ${toasts.value.map(
      (one) => html`<div class="toast ${one.kind}" key=${one.id}>
        <span>${one.message}</span><button aria-label="Close" onClick=${() => dismiss(one)}>×</button>
      </div>`,
    )}
  </div>`;

// A clock that makes the page count seconds, but only while it is looked at.
export function useNow(seconds = 1) {
  const [now, set] = useState(Date.now() / 1000);
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) set(Date.now() / 1000);
    }, seconds * 1000);
    return () => clearInterval(timer);
  }, [seconds]);
  return now;
}

// For how long something has lasted; it counts by itself.
export const Since = ({ at }) => html`<time>${ago(at, useNow(ago(at).endsWith(" s") ? 1 : 20))}</time>`;

export async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // Off this machine without TLS there is no clipboard: a selected field does the same.
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
  return undefined;
}
