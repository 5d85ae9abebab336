// Small parts that all views use.
import { html, useEffect, useRef, useState } from "./lib.js";
import { act, dismiss, mayAct, toasts } from "./state.js";
import { STATES, stateClass } from "./format.js";

export const State = ({ of }) => html`<span class="state ${stateClass(of)}">${(STATES[of] ?? [of])[0]}</span>`;

const BASELINES = { green: ["checks pass", "good"], red: ["checks fail", "bad"], none: ["no checks", "quiet"], unknown: ["not checked yet", "quiet"] };

// The result of the project's checks on its target branch itself.
export function Baseline({ of }) {
  const [text, kind] = BASELINES[of] ?? [`checks: ${of}`, "bad"];
  return html`<span class="state ${kind}">${text}</span>`;
}

export const Empty = ({ children }) => html`<p class="empty">${children}</p>`;

export const Trouble = ({ error }) => error && html`<p class="trouble" role="alert">${error.message}</p>`;

// A button that runs an action. With `ask`, the first press asks once.
export function Act({ run, ask, kind = "", children, title, disabled, keys }) {
  const [busy, setBusy] = useState(false);
  const [asking, setAsking] = useState(false);
  const yes = useRef(null);
  useEffect(() => { if (asking) yes.current?.focus(); }, [asking]);
  const go = async () => {
    setAsking(false);
    setBusy(true);
    await act(run);
    setBusy(false);
  };
  if (!mayAct.value) return null;
  if (asking) {
    return html`<span class="asking" role="group" onKeyDown=${(event) => { if (event.key === "Escape") { event.stopPropagation(); setAsking(false); } }}>
      <span>${ask}</span>
      <button ref=${yes} class="danger" data-keys="y" onClick=${go}>Yes</button>
      <button data-keys="n" onClick=${() => setAsking(false)}>No</button></span>`;
  }
  return html`<button class=${kind} title=${title} data-keys=${keys} disabled=${disabled || busy} aria-busy=${busy}
    onClick=${() => (ask ? setAsking(true) : go())}>${children}</button>`;
}

// One line of text that is sent with Enter.
export function Line({ label, send, placeholder, keys, verb = "Send" }) {
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async (event) => {
    event.preventDefault();
    if (!text.trim() || busy) return;
    setBusy(true);
    if (await act(() => send(text.trim()))) setText("");
    setBusy(false);
  };
  if (!mayAct.value) return null;
  return html`<form class="line" onSubmit=${submit}>
    <input aria-label=${label} data-keys=${keys} placeholder=${placeholder ?? label} value=${text} onInput=${(event) => setText(event.target.value)} />
    <button disabled=${!text.trim() || busy}>${verb}</button></form>`;
}

export function Tabs({ names, now, base }) {
  return html`<nav class="tabs" aria-label="Parts">${names.map(([key, label]) => html`
    <a href=${`${base}/${key}`} key=${key} aria-current=${key === now ? "page" : undefined}>${label}</a>`)}</nav>`;
}

export function Facts({ of }) {
  const shown = Object.entries(of).filter(([, value]) => value !== "" && value !== null && value !== undefined && value !== false);
  return shown.length > 0 && html`<dl class="facts">${shown.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

// A list of which only the visible part is in the document: ten thousand rows scroll like ten.
export function Rows({ items, height, row, className = "" }) {
  const box = useRef(null);
  const [view, setView] = useState({ top: 0, size: 800 });
  const measure = () => {
    const element = box.current;
    if (!element) return;
    const top = Math.max(0, -element.getBoundingClientRect().top);
    setView((old) => (Math.abs(old.top - top) < height && old.size === window.innerHeight ? old : { top, size: window.innerHeight }));
  };
  useEffect(() => {
    measure();
    window.addEventListener("scroll", measure, { passive: true });
    window.addEventListener("resize", measure);
    return () => { window.removeEventListener("scroll", measure); window.removeEventListener("resize", measure); };
  }, []);
  const first = Math.max(0, Math.floor(view.top / height) - 10);
  const last = Math.min(items.length, Math.ceil((view.top + view.size) / height) + 10);
  return html`<div ref=${box} class=${className} style=${{ paddingTop: `${first * height}px`, paddingBottom: `${(items.length - last) * height}px` }}>
    ${items.slice(first, last).map(row)}</div>`;
}

export const Toasts = () => html`<div class="toasts" role="status" aria-live="polite">${toasts.value.map((one) => html`
  <div class="toast ${one.kind}" key=${one.id}><span>${one.message}</span>
  <button aria-label="Close" onClick=${() => dismiss(one)}>×</button></div>`)}</div>`;

// A clock that makes the page count seconds, but only while it is looked at.
export function useNow(seconds = 1) {
  const [now, set] = useState(Date.now() / 1000);
  useEffect(() => {
    const timer = setInterval(() => { if (!document.hidden) set(Date.now() / 1000); }, seconds * 1000);
    return () => clearInterval(timer);
  }, [seconds]);
  return now;
}

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
