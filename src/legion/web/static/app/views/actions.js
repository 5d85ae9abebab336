// Every operation of the API as a form, for what has no view of its own. The forms follow the daemon's own description.
import { html, useEffect, useState } from "../lib.js";
import { Writing, useDraft } from "../writing.js";
import { Act, Empty, Trouble } from "../parts.js";
import { board, isFull, mayAct, project } from "../state.js";
import { call, get, withQuery } from "../api.js";
import { plural } from "../format.js";

// What a browser cannot do (the daemon refuses it), and what only agents do.
const LEFT_OUT = /^\/v1\/(shutdown|web\/(offers|addresses)|tools|output|agents\/(claim|submit|plan)$|tickets\/\{id\}\/(attach|shell|give-back))|^(?!\/v1\/)/;
// A key or a secret: only where nobody on the way can read it.
const WITH_KEYS = new Set(["post /v1/providers", "post /v1/forges", "post /v1/forges/secret", "post /v1/drivers"]);
const SECRET = /^(key|secret|token)$/;
const READS = new Set(["post /v1/mail", "post /v1/mail/find", "post /v1/leader/conversation"]);
const LONG = /^(text|task|context|criteria|plan|feedback|why|message|goal|words)$/;
let described = null;

export function Actions({ ticket = "", group = "", verb = "" }) {
  const [document, setDocument] = useState(described);
  const [error, setError] = useState(null);
  const [words, setWords] = useState("");
  const [open, setOpen] = useState("");
  useEffect(() => { if (!described) get("/v1/openapi.json").then((all) => { described = all; setDocument(all); }, setError); }, []);
  useEffect(() => { if (document && verb) setOpen(operations(document).find((one) => one.path.endsWith(`/${verb}`))?.key ?? ""); }, [document, verb]);
  if (!document) return html`<${Trouble} error=${error} />${!error && html`<${Empty}>Reading what Legion can do</${Empty}>`}`;
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = operations(document).filter((one) => (mayAct.value || one.reads) && (!ticket || one.path.includes("/tickets/{id}")) && (!group || one.path.startsWith(`/v1/${group}`)) && wanted.every((word) => one.text.includes(word)));
  return html`<section><h1>${ticket ? `All actions on ticket ${ticket}` : "All actions"}</h1>
    <div class="toolbar"><input type="search" id="filter" aria-label="Filter actions" placeholder="Filter ( / )" value=${words} onInput=${(event) => setWords(event.target.value)} /><span class="hint">${plural(shown.length, "action")}</span></div>
    <div class="tree">${shown.map((one) => html`<div key=${one.key}><button class="row" aria-expanded=${open === one.key} onClick=${() => setOpen(open === one.key ? "" : one.key)}>
      <span class="state ${one.reads ? "quiet" : "busy"}">${one.reads ? "shows" : "changes"}</span><span class="title">${one.summary}</span><span class="about">${one.group}</span></button>
      ${open === one.key && html`<${Form} one=${one} document=${document} ticket=${ticket} close=${() => setOpen("")} />`}</div>`)}</div></section>`;
}

function operations(document) {
  const found = [];
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, about] of Object.entries(methods)) {
      const key = `${method} ${path}`;
      if (LEFT_OUT.test(path) || (WITH_KEYS.has(key) && !isFull.value)) continue;
      const group = about.tags?.[0] ?? "";
      found.push({ key, path, method, group, about, summary: about.summary.replace("the caller", "you"), reads: method === "get" || READS.has(key), text: `${about.summary} ${path}`.toLowerCase() });
    }
  }
  return found.sort((a, b) => a.group.localeCompare(b.group));
}

function resolved(schema, document) {
  const plain = schema?.anyOf?.find((one) => one.type !== "null") ?? schema?.allOf?.[0] ?? schema ?? {};
  return plain.$ref ? document.components.schemas[plain.$ref.split("/").pop()] : plain;
}

function fieldsOf(one, document) {
  const body = resolved(one.about.requestBody?.content?.["application/json"]?.schema, document);
  const asked = (one.about.parameters ?? []).filter((field) => field.in !== "header").map((field) => ({ name: field.name, place: field.in, required: field.required, help: field.description, schema: resolved(field.schema, document), start: field.schema.default }));
  const sent = Object.entries(body.properties ?? {}).map(([name, schema]) => ({ name, place: "body", required: body.required?.includes(name), help: schema.description, schema: resolved(schema, document), start: schema.default }));
  return [...asked, ...sent];
}

function Form({ one, document, ticket, close }) {
  const fields = fieldsOf(one, document);
  const root = project.value || board.value?.projects[0]?.root || "";
  const known = { cwd: root, id: one.path.includes("/tickets/{id}") ? ticket : "" };
  const [form, setForm] = useDraft(one.key, {});
  const [secrets, setSecrets] = useState({});
  const [answer, setAnswer] = useState(null);
  const [fault, setFault] = useState("");
  const value = ({ name }) => secrets[name] ?? form[name] ?? known[name] ?? "";
  const change = (name, text) => (SECRET.test(name) ? setSecrets({ ...secrets, [name]: text }) : setForm({ ...form, [name]: text }));
  const send = async () => {
    setFault("");
    try {
      const path = one.path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(value({ name })));
      const query = Object.fromEntries(fields.filter((field) => field.place === "query").map((field) => [field.name, value(field)]));
      const body = Object.fromEntries(fields.filter((field) => field.place === "body" && value(field) !== "").map((field) => [field.name, read(field, value(field))]));
      const got = await call(one.method.toUpperCase(), withQuery(path, query), one.method === "get" || one.method === "delete" ? undefined : body, { waits: true });
      setAnswer({ got });
      setSecrets({});
      if (!one.reads) setForm(null);
      return got;
    } catch (problem) {
      setFault(problem.message);
      throw problem;
    }
  };
  const missing = fields.some((field) => field.required && value(field) === "");
  return html`<${Writing} close=${close}><form class="form action" onSubmit=${(event) => event.preventDefault()}>
    ${fields.map((field) => html`<${Field} key=${field.name} field=${field} value=${value(field)} set=${(text) => change(field.name, text)} />`)}
    ${fault && html`<p class="trouble" role="alert">${fault}</p>`}
    <div class="actions"><${Act} kind=${one.reads ? "" : "primary"} disabled=${missing} run=${send}>${one.reads ? "Show" : "Do it"}</${Act}>
      <button type="button" onClick=${close}>Close</button></div>
    ${answer && html`<div class="answer"><${Value} of=${answer.got} /></div>`}</form></${Writing}>`;
}

function Field({ field, value, set }) {
  const label = `${field.name.replaceAll("_", " ")}${field.required ? " (needed)" : ""}`;
  const hint = field.help && html`<span class="hint">${field.help}</span>`;
  const change = (event) => set(event.target.value);
  if (field.schema.type === "boolean") return html`<label class="check"><input type="checkbox" checked=${value === "" ? Boolean(field.start) : value === "true"} onChange=${(event) => set(String(event.target.checked))} /> ${label} ${hint}</label>`;
  if (field.schema.enum) return html`<label>${label}<select value=${value} onChange=${change}><option value="">as usual</option>${field.schema.enum.map((one) => html`<option key=${one}>${one}</option>`)}</select>${hint}</label>`;
  const lines = field.schema.type === "array";
  if (lines || field.schema.type === "object" || LONG.test(field.name)) {
    return html`<label>${label}<textarea rows=${lines ? 2 : 4} value=${value} placeholder=${lines ? "one per line" : field.schema.type === "object" ? "JSON" : ""} onInput=${change}></textarea>${hint}</label>`;
  }
  return html`<label>${label}<input value=${value} type=${SECRET.test(field.name) ? "password" : undefined} autocomplete="off" placeholder=${field.start ?? ""} inputmode=${/integer|number/.test(field.schema.type) ? "decimal" : undefined} onInput=${change} />${hint}</label>`;
}

function read(field, text) {
  const type = field.schema.type;
  if (type === "boolean") return text === "true";
  if (type === "integer" || type === "number") return Number(text);
  if (type === "object") return JSON.parse(text);
  if (type !== "array") return text;
  const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
  return lines.map((line) => (field.schema.items?.type === "integer" ? Number(line.replace(/^#/, "")) : field.schema.items?.type === "string" ? line : JSON.parse(line)));
}

const isPlain = (one) => one === null || typeof one !== "object";
const word = (one) => (one === null ? "" : typeof one === "boolean" ? (one ? "yes" : "no") : String(one));

// Any answer: facts, tables and texts.
function Value({ of }) {
  if (isPlain(of)) return word(of).includes("\n") ? html`<pre class="output short" tabindex="0">${word(of)}</pre>` : html`<span>${word(of)}</span>`;
  if (Array.isArray(of)) {
    if (!of.length) return html`<span class="hint">none</span>`;
    if (of.every(isPlain)) return html`<span>${of.map(word).join(", ")}</span>`;
    const names = [...new Set(of.flatMap((one) => Object.keys(one)))].filter((name) => of.some((one) => word(isPlain(one[name]) ? one[name] : "x")));
    return html`<table><thead><tr>${names.map((name) => html`<th key=${name}>${name.replaceAll("_", " ")}</th>`)}</tr></thead><tbody>${of.slice(0, 200).map((one, n) => html`<tr key=${n}>${names.map((name) => html`<td key=${name}><${Value} of=${one[name] ?? null} /></td>`)}</tr>`)}</tbody></table>`;
  }
  const facts = Object.entries(of).filter(([name, value]) => name !== "schema" && value !== null && value !== "");
  return html`<dl class="facts">${facts.map(([name, value]) => html`<div key=${name} class=${isPlain(value) ? "" : "across"}><dt>${name.replaceAll("_", " ")}</dt><dd><${Value} of=${value} /></dd></div>`)}</dl>`;
}
