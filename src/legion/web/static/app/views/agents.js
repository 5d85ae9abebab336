// Standing agents as a tree, their mail, and what can be said to them.
import { html, useState } from "../lib.js";
import { Writing, useDraft } from "../writing.js";
import { Act, Empty, Facts, Line, Trouble } from "../parts.js";
import { act, board, mayAct, project, useLive } from "../state.js";
import { get, post } from "../api.js";
import { ago, amount, day, dollars, plural } from "../format.js";
import { Prose } from "../prose.js";

const about = (one) => one.kind.startsWith("agent.") || one.kind.startsWith("mail.") || one.kind.startsWith("run.") || one.kind.startsWith("plan.");

export function Agents() {
  const { data, error } = useLive(() => get("/v1/agents"), [], about);
  const [hiring, setHiring] = useState(false);
  if (!data) return html`<${Trouble} error=${error} />`;
  const rows = [];
  const walk = (parent, depth) => data.agents.filter((one) => one.parent === parent).forEach((one) => { rows.push([one, depth]); walk(one.id, depth + 1); });
  walk(data.you, 0);
  return html`<section>
    <div class="toolbar">${mayAct.value && html`<button class="primary" data-keys="H" aria-expanded=${hiring} onClick=${() => setHiring(!hiring)}>Hire an agent</button>`}<a href="#/mail">Your mail</a></div>
    ${hiring && html`<${Hire} done=${() => setHiring(false)} />`}
    ${!rows.length && html`<${Empty}>No standing agents. Tickets get agents of their own; a standing agent stays, reads mail, and can lead others.</${Empty}>`}
    <div class="tree">${rows.map(([one, depth]) => html`<a class="row" key=${one.id} href=${`#/agent/${one.id}`} style=${{ paddingLeft: `${8 + depth * 22}px` }}>
      <span class="state ${one.working ? "busy" : "quiet"}">${one.working ? "at work" : "idle"}</span><b>${one.name || one.id}</b><span>${one.role}</span>
      <span class="about">${one.doing}</span>${one.waiting > 0 && html`<span class="flag">${plural(one.waiting, "message")}</span>`}<span>${dollars(one.spent)}</span></a>`)}</div>
  </section>`;
}

function Hire({ done }) {
  const [form, setForm] = useDraft("hire", { task: "", name: "", role: "", model: "", budget: "" });
  const roots = board.value?.projects ?? [];
  const set = (field) => (event) => setForm({ ...form, [field]: event.target.value });
  const hire = async () => {
    const cwd = project.value || roots[0]?.root || "";
    const hired = await post("/v1/agents", { ...form, cwd, budget: form.budget ? Number(form.budget) : null });
    setForm(null);
    done();
    return hired;
  };
  return html`<${Writing} close=${done}><form class="form" onSubmit=${(event) => event.preventDefault()}>
    <label>Task<textarea rows="3" value=${form.task} onInput=${set("task")} placeholder="What it is responsible for"></textarea></label>
    <div class="fields"><label>Name<input value=${form.name} onInput=${set("name")} /></label><label>Role<input value=${form.role} onInput=${set("role")} /></label>
      <label>Model<input value=${form.model} onInput=${set("model")} /></label><label>Budget in dollars<input inputmode="decimal" value=${form.budget} onInput=${set("budget")} /></label></div>
    <div class="actions"><${Act} kind="primary" disabled=${!form.task.trim()} run=${hire}>Hire</${Act}>
      <button type="button" onClick=${done}>Close</button></div></form></${Writing}>`;
}

export function Agent({ id }) {
  const { data, error } = useLive(() => get(`/v1/agents/${encodeURIComponent(id)}`), [id], about);
  const mail = useLive(() => post("/v1/mail", { agent: id, all: true }), [id], about);
  if (!data) return html`<${Trouble} error=${error} />`;
  const one = data.agent;
  return html`<article data-what=${one.name || one.id}>
    <p class="path"><a href="#/agents">Agents</a> / ${one.id}</p>
    <h1>${one.name || one.id} <span class="state ${one.working ? "busy" : "quiet"}">${one.working ? "at work" : "idle"}</span></h1>
    <p class="about">${one.doing}</p>
    <div class="actions">
      ${one.working && html`<${Act} keys="x" ask="Interrupt it?" run=${() => post("/v1/agents/interrupt", { id: one.id }, { waits: true })}>Interrupt</${Act}>`}
      <${Act} keys="d" run=${() => post("/v1/agents/delegate", { id: one.id, on: !one.delegate })}>${one.delegate ? "Let it work itself" : "Let it only lead"}</${Act}>
      <${Act} keys="a" run=${() => post("/v1/agents/verdict", { agent: one.id, approve: true })}>Approve its plan</${Act}>
      <${Act} keys="F" ask="Fire it? Its work is saved." run=${async () => { const fired = await post("/v1/agents/fire", { id: one.id }); location.hash = "#/agents"; return fired; }}>Fire</${Act}></div>
    <${Line} keys="e" label="Its plan: what should be different?" verb="Reject its plan" send=${(why) => post("/v1/agents/verdict", { agent: one.id, approve: false, why })} />
    <${Line} keys="i" label="Send it a message" send=${(text) => post("/v1/agents/tell", { to: one.id, text }, { waits: true })} />
    <h2>Task</h2><${Prose} text=${data.task} />
    <${Facts} of=${{ role: one.role, model: one.model, "reports to": named(one.parent), budget: one.budget === null ? "" : dollars(one.budget), left: one.left === null ? "" : dollars(one.left), spent: dollars(one.spent), worktree: data.worktree, hired: day(one.hired_at) }} />
    <h2>Mail</h2><${Messages} data=${mail.data} />
  </article>`;
}

export function Mail() {
  const { data, error } = useLive(() => post("/v1/mail", { all: true }), [], about);
  return html`<section><h1>Your mail</h1><${Trouble} error=${error} /><${Messages} data=${data} /></section>`;
}

const named = (agent) => (agent === "root" ? "you" : agent);

function Messages({ data }) {
  if (!data?.messages.length) return html`<${Empty}>No messages.</${Empty}>`;
  return html`<ol class="mail">${[...data.messages].reverse().map((one) => html`<li key=${one.id}>
    <header><b>${named(one.sender_name || one.sender)}</b> to ${named(one.recipient_name || one.recipient)} <span class="hint">${one.kind}, ${one.delivery}, ${ago(one.sent_at)} ago</span></header>
    <${Prose} text=${one.text} /></li>`)}</ol>`;
}
