// The form for a new ticket. Its fields are those of `legion dispatch`, as the daemon describes them.
import { html, useEffect, useState } from "../lib.js";
import { Act, Empty, Trouble } from "../parts.js";
import { takeFocus } from "../writing.js";
import { board, project, store, stored, useLive } from "../state.js";
import { get, post } from "../api.js";

const FIRST = ["title", "text", "criteria", "after", "prove"];
const isNumber = (field) => field.kind === "whole" || field.kind === "amount";
// Where the help of `legion dispatch` is about a terminal.
const HELP = { text: "The change that you want.", prove: "A command that must pass on its change. CRITERION :: COMMAND binds it to a criterion." };
const LONG = new Set(["text", "context", "criteria", "plan"]);

export function NewTicket({ all = false }) {
  const { data, error } = useLive(() => get("/web/fields"), [], () => false);
  const [form, setForm] = useState(() => stored("draft", {}));
  const [fault, setFault] = useState("");
  const [where, setWhere] = useState(project.value || board.value?.projects[0]?.root || "");
  useEffect(() => store("draft", Object.keys(form).length ? form : null), [form]);
  if (!data) return html`<${Trouble} error=${error} />`;
  const roots = board.value?.projects ?? [];
  if (!roots.length) return html`<${Empty}>There is no project yet: run <code>legion init</code> in a git repository.</${Empty}>`;
  const set = (name, value) => { setFault(""); setForm({ ...form, [name]: value }); };
  const send = async () => {
    try {
      const made = await post("/v1/tickets", { cwd: where, tickets: [ticketOf(form, data.fields)], request: form.request ?? remember(form, setForm) });
      setForm({});
      store("draft", null);
      location.hash = `#/ticket/${made.ids[0]}`;
      return { message: `Ticket ${made.ids[0]} is on the board.`, notes: made.notes };
    } catch (problem) {
      setFault(problem.message);
      throw problem;
    }
  };
  const shown = data.fields.filter((field) => FIRST.includes(field.name));
  const more = data.fields.filter((field) => !FIRST.includes(field.name));
  return html`<form class="form" ref=${takeFocus} onSubmit=${(event) => event.preventDefault()}>
    <h1>New ticket</h1>
    ${roots.length > 1 && html`<label>Project<select value=${where} onChange=${(event) => setWhere(event.target.value)}>${roots.map((one) => html`<option key=${one.root} value=${one.root}>${one.name}</option>`)}</select></label>`}
    ${shown.map((field) => html`<${Field} field=${field} key=${field.name} value=${form[field.name]} set=${set} />`)}
    <details open=${all}><summary>More fields</summary>${more.map((field) => html`<${Field} field=${field} key=${field.name} value=${form[field.name]} set=${set} />`)}</details>
    ${fault && html`<p class="trouble" role="alert">${fault}</p>`}
    <div class="actions"><${Act} kind="primary" disabled=${!(form.title ?? form.text ?? "").trim()} run=${send}>Create the ticket</${Act}>
      <button type="button" onClick=${() => setForm({})}>Clear</button></div>
    <p class="hint">What you typed is kept in this browser until the ticket is created.</p></form>`;
}

// The same form sent twice, after a broken connection, makes one ticket.
function remember(form, setForm) {
  const request = `page-${[...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
  setForm({ ...form, request });
  return request;
}

function ticketOf(form, fields) {
  const ticket = {};
  for (const field of fields) {
    const value = form[field.name];
    if (value === undefined || value === "") continue;
    if (field.kind === "texts") ticket[field.name] = value.split("\n").map((line) => line.trim()).filter(Boolean);
    else if (field.kind === "tickets") ticket[field.name] = value.split(/[\s,]+/).filter(Boolean).map((text) => Number(text.replace(/^#/, "")));
    else if (isNumber(field)) ticket[field.name] = Number(value);
    else ticket[field.name] = value;
  }
  ticket.title ??= (ticket.text ?? "").split("\n")[0].slice(0, 40);
  return ticket;
}

function Field({ field, value, set }) {
  const change = (event) => set(field.name, field.kind === "flag" ? event.target.checked : event.target.value);
  const label = field.name.replaceAll("_", " ");
  const hint = html`<span class="hint">${HELP[field.name] ?? field.help}</span>`;
  if (field.kind === "flag") return html`<label class="check"><input type="checkbox" checked=${Boolean(value)} onChange=${change} /> ${label} ${hint}</label>`;
  if (field.choices.length) {
    return html`<label>${label}<select value=${value ?? ""} onChange=${change}><option value="">as usual</option>${field.choices.map((one) => html`<option key=${one}>${one}</option>`)}</select>${hint}</label>`;
  }
  if (LONG.has(field.name) || field.kind === "texts") {
    return html`<label>${label}<textarea rows=${field.name === "text" ? 5 : 2} value=${value ?? ""} onInput=${change} placeholder=${field.kind === "texts" ? "one per line" : ""}></textarea>${hint}</label>`;
  }
  return html`<label>${label}<input value=${value ?? ""} inputmode=${isNumber(field) ? "decimal" : undefined} onInput=${change} />${hint}</label>`;
}
