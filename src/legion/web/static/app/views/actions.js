// Every operation of the API as a form, made of the daemon's own description, for what has no view.
import { html, useEffect, useState } from "../lib.js";
import { Writing, useDraft } from "../writing.js";
import { Act, Badge, Empty, Hint, Output, Table, Trouble } from "../parts.js";
import { Field } from "../fields.js";
import { cwdOf, isFull, mayAct } from "../state.js";
import { call, get, withQuery } from "../api.js";
import { plural } from "../format.js";

// What a browser cannot do (the daemon refuses it), and what only agents do.
const LEFT_OUT = /^\/v1\/(shutdown|web\/(offers|addresses)|tools|output|agents\/(claim|submit|plan)$)|^(?!\/v1\/)/;
const WITH_TERMINALS = /^\/v1\/tickets\/\{id\}\/(attach|shell|give-back)/;
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
  useEffect(() => {
    if (!described)
      get("/v1/openapi.json").then((all) => {
        described = all;
        setDocument(all);
      }, setError);
  }, []);
  useEffect(() => {
    if (document && verb) setOpen(operations(document).find((one) => one.path.endsWith(`/${verb}`))?.key ?? "");
  }, [document, verb]);
  if (!document)
    return html`<${Trouble} error=${error} />${!error && html`<${Empty}>Reading what Legion can do</${Empty}>`}`;
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = operations(document).filter(
    (one) =>
      (mayAct.value || one.reads) &&
      (!ticket || one.path.includes("/tickets/{id}")) &&
      (!group || one.path.startsWith(`/v1/${group}`)) &&
      wanted.every((word) => one.text.includes(word)),
  );
  const row = (one) => {
    const now = open === one.key;
    const close = () => setOpen("");
    return html`<div key=${one.key}>
      <button class="row" aria-expanded=${now} onClick=${() => setOpen(now ? "" : one.key)}>
        <${Badge} of=${one.reads ? "shows" : "changes"} kind=${one.reads ? "quiet" : "busy"} />
        <span class="title">${one.summary}</span><span class="about">${one.group}</span>
      </button>
      ${now && html`<${Operation} one=${one} document=${document} ticket=${ticket} close=${close} />`}
    </div>`;
  };
  return html`<section>
    <h1>${ticket ? `All actions on ticket ${ticket}` : "All actions"}</h1>
    <div class="toolbar">
      <input type="search" id="filter" aria-label="Filter actions" placeholder="Filter ( / )" value=${words}
        onInput=${(event) => setWords(event.target.value)} />
      <${Hint} of=${plural(shown.length, "action")} />
    </div>
    <div class="tree">${shown.map(row)}</div>
  </section>`;
}

function operations(document) {
  const found = [];
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, about] of Object.entries(methods)) {
      const key = `${method} ${path}`;
      if (LEFT_OUT.test(path) || WITH_TERMINALS.test(path) || (WITH_KEYS.has(key) && !isFull.value)) continue;
      const group = about.tags?.[0] ?? "";
      found.push({
        key,
        path,
        method,
        group,
        about,
        summary: about.summary.replace("the caller", "you"),
        reads: method === "get" || READS.has(key),
        text: `${about.summary} ${path}`.toLowerCase(),
      });
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
  const asked = (one.about.parameters ?? [])
    .filter((field) => field.in !== "header")
    .map((field) => ({
      name: field.name,
      place: field.in,
      required: field.required,
      help: field.description,
      schema: resolved(field.schema, document),
      start: field.schema.default,
    }));
  const sent = Object.entries(body.properties ?? {}).map(([name, schema]) => ({
    name,
    place: "body",
    required: body.required?.includes(name),
    help: schema.description,
    schema: resolved(schema, document),
    start: schema.default,
  }));
  return [...asked, ...sent];
}

function Operation({ one, document, ticket, close }) {
  const fields = fieldsOf(one, document);
  const known = { cwd: cwdOf(), id: one.path.includes("/tickets/{id}") ? ticket : "" };
  const [form, setForm, sent] = useDraft(one.key, {});
  const [secrets, setSecrets] = useState({});
  const [answer, setAnswer] = useState(null);
  const [fault, setFault] = useState(null);
  const value = ({ name }) => secrets[name] ?? form[name] ?? known[name] ?? "";
  const change =
    ({ name }) =>
    (text) =>
      SECRET.test(name)
        ? setSecrets((old) => ({ ...old, [name]: text }))
        : setForm((old) => ({ ...old, [name]: text }));
  const send = async () => {
    setFault(null);
    try {
      const path = one.path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(value({ name })));
      const placed = (place) => fields.filter((field) => field.place === place && value(field) !== "");
      const query = Object.fromEntries(placed("query").map((field) => [field.name, value(field)]));
      const body = Object.fromEntries(placed("body").map((field) => [field.name, read(field, value(field))]));
      const bare = one.method === "get" || one.method === "delete";
      const got = await call(one.method.toUpperCase(), withQuery(path, query), bare ? undefined : body, {
        waits: true,
      });
      setAnswer({ got });
      setSecrets({});
      if (!one.reads) sent(form);
      return got;
    } catch (problem) {
      setFault(problem);
      throw problem;
    }
  };
  // The row's question, with the thing that it acts on.
  const what = [one.about["x-on"], value({ name: "id" }) || value({ name: "name" })].filter(Boolean).join(" ");
  const asks = one.about["x-asks"]?.replace("{what}", what || "it");
  const missing = fields.some((field) => field.required && value(field) === "");
  const shown = (field) => (value(field) === "" && field.schema.type === "boolean" ? field.start : value(field));
  const box = (field) =>
    html`<${Field} key=${field.name} of=${boxOf(field)} value=${shown(field)} set=${change(field)} />`;
  return html`<${Writing} close=${close}>
    <form class="form action" autocomplete="off" onSubmit=${(event) => event.preventDefault()}>
      ${fields.map(box)}<${Trouble} error=${fault} />
      <div class="actions">
        <${Act} kind=${one.reads ? "" : "primary"} disabled=${missing} run=${send} ask=${asks}>
          ${one.reads ? "Show" : "Do it"}
        </${Act}>
        <button type="button" onClick=${close}>Close</button>
      </div>
      ${answer && html`<div class="answer"><${Value} of=${answer.got} /></div>`}
    </form>
  </${Writing}>`;
}

// What the form shows of a field.
function boxOf({ name, required, help, schema, start }) {
  const one = { name, label: `${name.replaceAll("_", " ")}${required ? " (needed)" : ""}`, hint: help };
  if (schema.type === "boolean") return { ...one, kind: "check" };
  if (schema.enum) return { ...one, kind: "choice", choices: schema.enum };
  const lines = schema.type === "array";
  const json = schema.type === "object";
  const placeholder = lines ? "one per line" : json ? "JSON" : "";
  if (lines || json || LONG.test(name)) return { ...one, kind: "long", rows: lines ? 2 : 4, placeholder };
  const kind = SECRET.test(name) ? "secret" : /integer|number/.test(schema.type) ? "number" : "";
  return { ...one, kind, placeholder: start ?? "" };
}

function read(field, text) {
  const { type, items } = field.schema;
  if (type === "integer" || type === "number") return Number(text);
  if (type === "boolean") return String(text) === "true";
  if (type === "object") return JSON.parse(text);
  if (type !== "array") return text;
  const one = { integer: (line) => Number(line.replace(/^#/, "")), string: String }[items?.type] ?? JSON.parse;
  const lines = text.split("\n").map((line) => line.trim());
  return lines.filter(Boolean).map((line) => one(line));
}

const isPlain = (one) => one === null || typeof one !== "object";
const word = (one) => (one === null ? "" : typeof one === "boolean" ? (one ? "yes" : "no") : String(one));
const spaced = (name) => name.replaceAll("_", " ");
const MOST_ROWS = 200;

// Any answer: facts, tables and texts.
function Value({ of }) {
  if (isPlain(of)) return word(of).includes("\n") ? html`<${Output} of=${word(of)} />` : html`<span>${word(of)}</span>`;
  if (Array.isArray(of)) {
    if (!of.length) return html`<${Hint} of="none" />`;
    if (of.every(isPlain)) return html`<span>${of.map(word).join(", ")}</span>`;
    const names = [...new Set(of.flatMap((one) => Object.keys(one)))];
    const filled = names.filter((name) => of.some((one) => word(isPlain(one[name]) ? one[name] : "x")));
    const columns = filled.map((name) => [spaced(name), (one) => html`<${Value} of=${one[name] ?? null} />`]);
    return html`<${Table} of=${of.slice(0, MOST_ROWS)} columns=${columns} />`;
  }
  const facts = Object.entries(of).filter(([name, value]) => name !== "schema" && value !== null && value !== "");
  const fact = ([name, value]) => html`<div key=${name} class=${isPlain(value) ? "" : "across"}>
    <dt>${spaced(name)}</dt><dd><${Value} of=${value} /></dd>
  </div>`;
  return html`<dl class="facts">${facts.map(fact)}</dl>`;
}
