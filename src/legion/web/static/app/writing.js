// Where a person writes: what has the focus, what is a draft, and whether a key may act on the page.
import { createContext, html, signal, useContext, useLayoutEffect, useRef } from "./lib.js";

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

// The view that is shown. A view hands it to its boxes, so that no box asks the address, which may be ahead of it.
const Place = createContext("");
export const At = Place.Provider;
const drafts = new Map();

// A browser that keeps nothing: a draft lives as long as the page.
const storage = (key, lasting) => ({
  read: () => {
    try {
      return JSON.parse((lasting ? localStorage : sessionStorage).getItem(key));
    } catch {
      return null;
    }
  },
  write: (value) => {
    try {
      if (value === null) (lasting ? localStorage : sessionStorage).removeItem(key);
      else (lasting ? localStorage : sessionStorage).setItem(key, JSON.stringify(value));
    } catch {
      /* in memory only */
    }
  },
});

function draftOf(key, lasting) {
  if (!drafts.has(key)) {
    const { read, write } = storage(key, lasting);
    drafts.set(key, { now: signal(read()), write });
  }
  return drafts.get(key);
}

// What is left of a draft when a part of it was sent: what was typed meanwhile is not lost.
export function rest(now, sent) {
  if (typeof now === "string" && now.startsWith(sent)) return now.slice(sent.length).trimStart() || null;
  if (Array.isArray(now)) {
    const left = now.filter((one) => !sent.includes(one));
    return left.length ? left : null;
  }
  return JSON.stringify(now) === JSON.stringify(sent) ? null : now;
}

// What is typed into a box, kept under a name until it is sent: in this tab for this view, or, `lasting`, in this
// browser for every view. Two boxes of one name show the same. `set` gets a value, or what makes it of the last one;
// `sent` takes away what was sent and says whether something is left.
export function useDraft(name, start = /** @type {any} */ (""), { lasting = false } = {}) {
  const place = useContext(Place);
  const { now, write } = draftOf(lasting ? `legion.${name}` : `legion.draft.${place} ${name}`, lasting);
  const set = (next) => {
    now.value = typeof next === "function" ? next(now.peek() ?? start) : next;
    write(now.peek());
  };
  const sent = (what) => {
    set(rest(now.peek(), what));
    return now.peek() !== null;
  };
  return /** @type {[any, (next: any) => void, (what: any) => boolean]} */ ([now.value ?? start, set, sent]);
}
