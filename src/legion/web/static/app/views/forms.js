// The form for a new ticket. Its fields are those of `legion dispatch`, as the daemon describes them.
import { html, useState } from "../lib.js";
import { Act, Empty, Trouble } from "../parts.js";
import { Field } from "../fields.js";
import { takeFocus, useDraft } from "../writing.js";
import { board, cwdOf, useRead } from "../state.js";
import { post } from "../api.js";

const FIRST = ["title", "text", "criteria", "after", "prove"];
const LONG = new Set(["text", "context", "criteria", "plan"]);
// Where the help of `legion dispatch` is about a terminal.
const HELP = {
  text: "The change that you want.",
  prove: "A command that must pass on its change. CRITERION :: COMMAND binds it to a criterion.",
};
const isNumber = (field) => field.kind === "whole" || field.kind === "amount";

// What the form shows of a field.
function boxOf(field) {
  const { name, kind, choices } = field;
  const one = { name, label: name.replaceAll("_", " "), hint: HELP[name] ?? field.help };
  if (kind === "flag") return { ...one, kind: "check" };
  if (choices.length) return { ...one, kind: "choice", choices };
  const lines = kind === "texts";
  if (lines || LONG.has(name))
    return { ...one, kind: "long", rows: name === "text" ? 5 : 2, placeholder: lines ? "one per line" : "" };
  return { ...one, kind: isNumber(field) ? "number" : "" };
}

export function NewTicket({ all = false }) {
  const { data, error } = useRead("/web/fields");
  const [form, setForm, sent] = useDraft("draft", {}, { lasting: true });
  const [fault, setFault] = useState(null);
  const [where, setWhere] = useState(cwdOf());
  if (!data) return html`<${Trouble} error=${error} />`;
  const roots = board.value?.projects ?? [];
  if (!roots.length)
    return html`<${Empty}>There is no project yet: run <code>legion init</code> in a git repository.</${Empty}>`;
  const set = (name) => (value) => {
    setFault(null);
    setForm((old) => ({ ...old, [name]: value }));
  };
  const send = async () => {
    try {
      const asked = { request: newRequest(), ...form };
      setForm(asked);
      const wanted = { cwd: where, tickets: [ticketOf(form, data.fields)], request: asked.request };
      const made = await post("/v1/tickets", wanted);
      // The rest is for another ticket.
      if (sent(asked)) setForm(({ request: _, ...typed }) => typed);
      location.hash = `#/ticket/${made.ids[0]}`;
      return { message: `Ticket ${made.ids[0]} is on the board.`, notes: made.notes };
    } catch (problem) {
      setFault(problem);
      throw problem;
    }
  };
  const fields = (first) =>
    data.fields
      .filter(({ name }) => FIRST.includes(name) === first)
      .map((one) => html`<${Field} key=${one.name} of=${boxOf(one)} value=${form[one.name]} set=${set(one.name)} />`);
  const projects = roots.map((one) => html`<option key=${one.root} value=${one.root}>${one.name}</option>`);
  return html`<form class="form" ref=${takeFocus} onSubmit=${(event) => event.preventDefault()}>
    <h1>New ticket</h1>
    ${
      roots.length > 1 &&
      html`<label>
        Project<select value=${where} onChange=${(event) => setWhere(event.target.value)}>${projects}</select>
      </label>`
    }
    ${fields(true)}
    <details open=${all}><summary>More fields</summary>${fields(false)}</details>
    <${Trouble} error=${fault} />
    <div class="actions">
      <${Act} kind="primary" disabled=${!(form.title ?? form.text ?? "").trim()} run=${send}>Create the ticket</${Act}>
      <button type="button" onClick=${() => setForm(null)}>Clear</button>
    </div>
    <p class="hint">What you typed is kept in this browser until the ticket is created.</p>
  </form>`;
}

// The same form sent twice, after a broken connection, makes one ticket.
function newRequest() {
  const bytes = [...crypto.getRandomValues(new Uint8Array(12))];
  return `page-${bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

const READ = {
  texts: (text) =>
    text
      .split("\n")
      .map((line) => line.trim())
      .filter(Boolean),
  tickets: (text) =>
    text
      .split(/[\s,]+/)
      .filter(Boolean)
      .map((one) => Number(one.replace(/^#/, ""))),
  whole: Number,
  amount: Number,
};

function ticketOf(form, fields) {
  const filled = fields.filter(({ name }) => form[name] !== undefined && form[name] !== "");
  const ticket = Object.fromEntries(filled.map(({ name, kind }) => [name, READ[kind]?.(form[name]) ?? form[name]]));
  ticket.title ??= (ticket.text ?? "").split("\n")[0].slice(0, 40);
  return ticket;
}
