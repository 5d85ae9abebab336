// A form from a description of its fields: one look for new tickets, for every operation and for what views ask.
import { html, useState } from "./lib.js";
import { odd } from "./odd.js";
import { Act, Odd, Trouble } from "./parts.js";
import { Writing, useDraft } from "./writing.js";

// A field is { name, label, kind, hint, choices } and attributes of its box; a kind is long, check, choice, secret,
// number or, without one, a line of text.
export function Field({ of, value = "", set }) {
  const { name, label, kind, hint, choices, ...more } = of;
  const change = (event) => set(kind === "check" ? event.target.checked : event.target.value);
  const help = hint && html`<span class="hint">${hint}</span>`;
  if (kind === "check") {
    return html`<label class="check">
      <input type="checkbox" checked=${Boolean(value)} onChange=${change} /> ${label} ${help}
    </label>`;
  }
  const options = choices?.map((one) => html`<option key=${one}>${one}</option>`);
  if (kind === "choice") {
    const box = html`<select value=${value} onChange=${change}><option value="">as usual</option>${options}</select>`;
    return html`<label>${label}${box}${help}</label>`;
  }
  if (kind === "long")
    return html`<label>${label}<textarea rows="3" value=${value} onInput=${change} ...${more} />${help}</label>`;
  const type = kind === "secret" ? "password" : undefined;
  const list = choices && `choices-${name}`;
  return html`<label>
    ${label}
    <input value=${value} type=${type} list=${list} autocomplete=${type && "off"} spellcheck=${type && "false"}
      inputmode=${kind === "number" ? "decimal" : undefined} onInput=${change} ...${more} />
    ${help}${list && html`<datalist id=${list}>${options}</datalist>`}
  </label>`;
}

// The fields of a list, side by side where they are a list in it, folded in { more }: [a, [b, c], { more: [d] }].
// `keep` holds what was typed, as `useDraft` does. A secret is never kept: it leaves the page with the first try,
// whatever the answer is.
export function Form({
  name,
  fields,
  start = {},
  keep,
  needs,
  verb,
  kind = "primary",
  disabled,
  send,
  close,
  children,
}) {
  const draft = useDraft(name, start);
  const [form, setForm, sent] = keep ?? draft;
  const [secrets, setSecrets] = useState({});
  const values = { ...form, ...secrets };
  const set = (one) => (text) =>
    one.kind === "secret"
      ? setSecrets((old) => ({ ...old, [one.name]: text }))
      : setForm((old) => ({ ...old, [one.name]: text }));
  const box = (one) => html`<${Field} key=${one.name} of=${one} value=${values[one.name]} set=${set(one)} />`;
  const side = (all) => html`<div class="fields">${all.map(box)}</div>`;
  const shown = (one) =>
    one?.more
      ? html`<details><summary>More fields</summary>${side(one.more)}</details>`
      : Array.isArray(one)
        ? side(one)
        : one && box(one);
  const go = async () => {
    setSecrets({});
    const answer = await send(values);
    sent(form);
    return answer;
  };
  const missing = needs?.some((one) => !String(values[one] ?? "").trim());
  const body = html`<form class="form" autocomplete="off" onSubmit=${(event) => event.preventDefault()}>
    ${fields.map(shown)}${children}
    <div class="actions">
      <${Act} kind=${kind} disabled=${missing || disabled} run=${go}>${verb}</${Act}>
      ${close && html`<button type="button" onClick=${close}>Close</button>`}
    </div>
  </form>`;
  return close ? html`<${Writing} close=${close}>${body}</${Writing}>` : body;
}

// The text of a file, over the page. A draft is saved over the version that it was made of, and over no other.
export function Editor({
  read: { data, error, again },
  draft: name,
  label,
  title,
  box,
  rows,
  fixed,
  fresh,
  save,
  close,
}) {
  const [draft, setDraft, sent] = useDraft(name, null);
  if (!data) return html`<${Trouble} error=${error} />`;
  const text = draft?.text ?? data.text;
  const made = { text, version: draft?.version ?? data.version };
  const change = (event) => setDraft({ ...made, text: event.target.value });
  const go = async () => {
    const answer = await save(made);
    if (sent(draft)) setDraft((typed) => ({ text: typed.text }));
    else close();
    again.current();
    return answer;
  };
  const discard = async () => setDraft(null);
  return html`<${Writing} className="editor" label=${label} close=${close}>
    <h2>${title}</h2>
    <${Odd} in=${odd(text)} where="This text" />
    <textarea rows=${rows} spellcheck="false" aria-label=${box} value=${text} readonly=${fixed} onInput=${change} />
    <div class="actions">
      ${!fixed && html`<${Act} kind="primary" disabled=${!draft && !fresh} run=${go}>Save</${Act}>`}
      <button onClick=${close}>Close</button>
      ${draft && html`<${Act} ask="Discard what you changed?" run=${discard}>Discard changes</${Act}>`}
    </div>
  </${Writing}>`;
}
