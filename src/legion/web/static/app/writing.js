// Where a person writes: what has the focus, what is a draft, and whether a key may act on the page.
import { html, useLayoutEffect, useRef, useState } from "./lib.js";

const TEXT = "input:not([type=checkbox], [type=radio], [type=button]), textarea, select, [contenteditable], .xterm";
const FIELD = "textarea, input, select";
const forms = [];
// The text box that has the focus, or had it when it was taken away under the person's hands.
let written = /** @type {any} */ (null);

export const textBox = (element) => element?.closest?.(TEXT) ?? null;
window.addEventListener("focusin", (event) => {
  written = textBox(event.target);
});
window.addEventListener(
  "pointerdown",
  (event) => {
    written = textBox(event.target);
  },
  true,
);

// Whether keys are text: a form is open, or a text box has the focus or lost it by no act of the person.
export const isWriting = () => written !== null || forms.some((one) => one.box.querySelector(FIELD));

export const leaveBox = () => {
  written = null;
};

// The person leaves what they write: the innermost open form, else the box. Says whether there was one.
export function leaveWriting() {
  const [box, form] = [written, forms.at(-1)];
  written = null;
  if (form) form.close();
  else box?.blur();
  return Boolean(form || box);
}

// A form that opens by an act of the person. It takes the focus, Esc closes it, and closing gives the focus back. What
// was typed stays a draft.
export function Writing({ close, label, className = "", children }) {
  const box = useRef(null);
  const now = useRef(close);
  now.current = close;
  useLayoutEffect(() => {
    const opener = /** @type {any} */ (document.activeElement);
    const form = { box: box.current, close: () => now.current() };
    forms.push(form);
    (form.box.querySelector(FIELD) ?? form.box.querySelector("button"))?.focus();
    return () => {
      forms.splice(forms.indexOf(form), 1);
      if (written) return;
      const back = opener?.isConnected && opener !== document.body ? opener : document.getElementById("main");
      queueMicrotask(() => {
        if (document.activeElement === document.body) back?.focus({ preventScroll: true });
      });
    };
  }, []);
  return html`<div class="writing ${className}" ref=${box} role=${label && "dialog"} aria-label=${label}>
    ${children}
  </div>`;
}

// As a ref: a view whose purpose is to write has the focus at once.
export const takeFocus = (form) => form?.querySelector(FIELD)?.focus();

function kept(key) {
  try {
    return JSON.parse(sessionStorage.getItem(`legion.draft.${key}`));
  } catch {
    return null;
  }
}

function keep(key, value) {
  try {
    if (value === null) sessionStorage.removeItem(`legion.draft.${key}`);
    else sessionStorage.setItem(`legion.draft.${key}`, JSON.stringify(value));
  } catch {
    /* a browser that keeps nothing: a draft lives as long as its view */
  }
}

// What is typed into a box of a view, kept in this tab under a name until it is sent: `set(null)`.
export function useDraft(name, start = "") {
  const place = useRef(location.hash.split("/").slice(0, 3).join("/"));
  const key = `${place.current} ${name}`;
  const [state, set] = useState({ key: null, value: start });
  const value = state.key === key ? state.value : (kept(key) ?? start);
  return [
    value,
    (next) => {
      keep(key, next);
      set({ key, value: next ?? start });
    },
  ];
}
