// Providers of models, their keys and routes. A key is typed only into a page on Legion's machine or behind TLS: it is sent once, and never kept or shown.
import { html, useState } from "../lib.js";
import { Writing, useDraft } from "../writing.js";
import { Act, Empty, Trouble } from "../parts.js";
import { isFull, mayAct, useLive } from "../state.js";
import { get, post } from "../api.js";

const never = () => false;
const USUAL = ["anthropic", "openai", "openrouter", "minimax", "ollama", "vllm", "lmstudio"];
const APIS = ["anthropic", "openai_chat", "openai_responses"];

export function Models() {
  const [version, setVersion] = useState(0);
  const [adding, setAdding] = useState(false);
  const providers = useLive(() => get("/v1/providers"), [version], never);
  const routes = useLive(() => get("/v1/providers/routes"), [version], never);
  const changed = async (request) => { const answer = await request; setVersion(version + 1); return answer; };
  const remove = (one) => changed(post("/v1/providers/remove", { name: one.name, yes: true }));
  const removeRoute = ({ model, provider, agent, role, team }) => changed(post("/v1/providers/routes/remove", { model, provider, agent, role, team }));
  return html`<section><h1>Models</h1>
    ${isFull.value && html`<div class="toolbar"><button class="primary" data-keys="a" aria-expanded=${adding} onClick=${() => setAdding(!adding)}>Add a provider</button></div>`}
    ${adding && html`<${Adding} close=${() => setAdding(false)} done=${(request) => changed(request).then((answer) => { setAdding(false); return answer; })} />`}
    <${Trouble} error=${providers.error} />
    ${providers.data?.providers.length === 0 && html`<${Empty}>No provider yet.</${Empty}>`}
    ${providers.data?.providers.length > 0 && html`<table><thead><tr><th>Provider</th><th>Address</th><th>Key</th><th>Model</th><th><span class="unseen">Acts</span></th></tr></thead><tbody>${providers.data.providers.map((one) => html`<tr key=${one.name} tabindex="-1" data-what=${one.name}>
      <td>${one.name} ${one.default && html`<span class="flag">default</span>`}</td><td>${one.url}</td><td>${one.found === false ? html`<span class="state bad">missing</span> ` : ""}${one.key}</td><td>${one.model}</td>
      <td><span class="actions"><${Act} keys="t" run=${() => post("/v1/providers/test", { name: one.name }, { waits: true })}>Test</${Act}>${isFull.value && html`<${Act} keys="d" ask=${`Remove ${one.name} and its stored key?`} run=${() => remove(one)}>Remove</${Act}>`}</span></td></tr>`)}</tbody></table>`}
    <h2>Routes</h2>${routes.data?.routes.length ? html`<table><thead><tr><th>Model</th><th>Answered by</th><th>Only for</th><th><span class="unseen">Acts</span></th></tr></thead><tbody>${routes.data.routes.map((one, position) => html`<tr key=${position} tabindex="-1" data-what=${one.model}>
      <td>${one.model}</td><td>${one.to.join(", then ")}</td><td>${[one.provider, one.agent, one.role, one.team].filter(Boolean).join(", ")}</td>
      <td>${isFull.value && html`<${Act} keys="d" ask="Remove this route?" run=${() => removeRoute(one)}>Remove</${Act}>`}</td></tr>`)}</tbody></table>` : html`<${Empty}>No routes: each model is requested from its own provider.</${Empty}>`}
    ${isFull.value && html`<${Route} save=${(wanted) => changed(post("/v1/providers/routes", wanted))} />`}
    ${mayAct.value && !isFull.value && html`<p class="hint">This address is not encrypted: providers and routes are changed on Legion's machine, or behind <code>legion web --tls</code>.</p>`}</section>`;
}

function Adding({ done, close }) {
  const [form, setForm] = useDraft("provider", { name: "", url: "", kind: "", model: "" });
  const [key, setKey] = useState("");
  const set = (field) => (event) => setForm({ ...form, [field]: event.target.value });
  const add = async () => {
    const { name, url, kind, model } = form;
    // Whatever the answer is, the key leaves the page.
    setKey("");
    const answer = await done(post("/v1/providers", { name: name.trim(), key: key.trim(), url: url.trim(), kind, model: model.trim() || null, no_key: !key.trim() }, { waits: true }));
    setForm(null);
    return answer;
  };
  return html`<${Writing} close=${close}><form class="form" autocomplete="off" onSubmit=${(event) => event.preventDefault()}>
    <label>Name<input value=${form.name} list="usual-providers" onInput=${set("name")} /><span class="hint">${USUAL.slice(0, 4).join(", ")} or a name of your own with an address.</span></label>
    <datalist id="usual-providers">${USUAL.map((one) => html`<option key=${one}>${one}</option>`)}</datalist>
    <label>Key<input type="password" autocomplete="off" spellcheck="false" value=${key} onInput=${(event) => setKey(event.target.value)} /><span class="hint">It is sent to Legion once and kept in a file that only you can read. Empty: the provider needs none.</span></label>
    <div class="fields"><label>Address<input value=${form.url} placeholder="as usual" onInput=${set("url")} /></label>
      <label>API<select value=${form.kind} onChange=${set("kind")}><option value="">as usual</option>${APIS.map((one) => html`<option key=${one}>${one}</option>`)}</select></label>
      <label>Model<input value=${form.model} placeholder="as the agent asks" onInput=${set("model")} /></label></div>
    <div class="actions"><${Act} kind="primary" disabled=${!form.name.trim()} run=${add}>Add it</${Act}>
      <button type="button" onClick=${close}>Close</button></div></form></${Writing}>`;
}

function Route({ save }) {
  const [form, setForm] = useDraft("route", { model: "", to: "" });
  const set = (field) => (event) => setForm({ ...form, [field]: event.target.value });
  const go = async () => {
    const answer = await save({ model: form.model.trim(), to: form.to.split(",").map((one) => one.trim()).filter(Boolean) });
    setForm(null);
    return answer;
  };
  return html`<form class="form" onSubmit=${(event) => event.preventDefault()}><div class="fields"><label>Model<input value=${form.model} placeholder="claude-opus*" onInput=${set("model")} /></label>
    <label>Answered by<input value=${form.to} placeholder="openrouter/some-model, anthropic" onInput=${set("to")} /></label></div>
    <div class="actions"><${Act} disabled=${!form.model.trim() || !form.to.trim()} run=${go}>Set the route</${Act}><a href="#/actions/providers">With an agent, role, team or price</a></div></form>`;
}
