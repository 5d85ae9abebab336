// Plans of goals, epics, templates and memories: from a sentence to approved tickets.
import { html, useState } from "../lib.js";
import { Writing, useDraft } from "../writing.js";
import { odd } from "../odd.js";
import { Act, Empty, Facts, Line, Odd, State, Trouble } from "../parts.js";
import { board, mayAct, project, store, stored, useLive } from "../state.js";
import { get, post } from "../api.js";
import { ago, day, dollars, duration, plural } from "../format.js";
import { Question } from "./inbox.js";
import { Prose } from "../prose.js";

const cwdOf = () => project.value || board.value?.projects[0]?.root || "";
const about = (one) => /^(plan|ticket|question)\./.test(one.kind);
const STATES = { planning: "busy", asking: "needs", ready: "good", faulty: "needs", partly: "good", approved: "quiet", failed: "bad", dropped: "quiet" };
const STAGES = { working: "busy", asking: "needs", done: "good", failed: "bad" };
const PlanState = ({ of }) => html`<span class="state ${STATES[of] ?? "quiet"}">${of}</span>`;
const numberOf = (id) => Number(id.slice(1));
const opened = (page) => { location.hash = `#/plan/${page.plan.id}`; return { message: `${page.plan.id}: its planner reads the repository.` }; };

export function Plans() {
  const cwd = cwdOf();
  const { data, error } = useLive(() => get("/v1/plans", { cwd, all: true }), [cwd], about);
  return html`<section><h1>Plans</h1>${mayAct.value && html`<${Goal} cwd=${cwd} />`}<${Trouble} error=${error} />
    ${data?.plans.length === 0 && html`<${Empty}>No plans yet. A planner reads the repository and proposes tickets; nothing runs until you approve.</${Empty}>`}
    <div class="tree">${(data?.plans ?? []).map((one) => html`<a class="row" key=${one.id} href=${`#/plan/${one.id}`}><span class="number">${one.id}</span><${PlanState} of=${one.state} />
      <span class="title">${one.goal}</span><span class="about">${one.reason || `${plural(one.tickets, "ticket")}, ${one.approved} approved`}</span><span class="age">${ago(one.moved_at)}</span></a>`)}</div>
    <${Templates} cwd=${cwd} /><${Memories} cwd=${cwd} /></section>`;
}

function Goal({ cwd }) {
  const [form, setForm] = useState(() => stored("goal", { goal: "" }));
  const set = (name, value) => { const next = { ...form, [name]: value }; setForm(next); store("goal", next); };
  const send = async () => {
    const made = await post("/v1/plans", { cwd, goal: form.goal, model: form.model ?? "", team: form.team ?? "", budget: form.budget ? Number(form.budget) : null, questions: Boolean(form.questions), spec: Boolean(form.spec), keep_docs: Boolean(form.spec && form.keep) });
    store("goal", null);
    return opened(made);
  };
  return html`<form class="form" onSubmit=${(event) => event.preventDefault()}>
    <label>Goal<textarea rows="3" value=${form.goal} onInput=${(event) => set("goal", event.target.value)} placeholder="What should be true when it is done?"></textarea></label>
    <details><summary>More fields</summary><div class="fields">${[["team", "Team"], ["model", "Model of the planner"], ["budget", "Budget of the planner in dollars"]].map(([name, label]) => html`
      <label key=${name}>${label}<input value=${form[name] ?? ""} onInput=${(event) => set(name, event.target.value)} /></label>`)}</div></details>
    <label class="check"><input type="checkbox" checked=${Boolean(form.questions)} onChange=${(event) => set("questions", event.target.checked)} /> The planner may ask you first</label>
    <label class="check"><input type="checkbox" checked=${Boolean(form.spec)} onChange=${(event) => set("spec", event.target.checked)} /> A specification is written first</label>
    ${form.spec && html`<label class="check"><input type="checkbox" checked=${Boolean(form.keep)} onChange=${(event) => set("keep", event.target.checked)} /> Its documents land in the repository</label>`}
    <div class="actions"><${Act} kind="primary" disabled=${!form.goal.trim() || !cwd} run=${send}>Plan it</${Act}></div></form>`;
}

export function Plan({ id }) {
  const { data: page, error } = useLive(() => get(`/v1/plans/${id}`), [id], about);
  const [chosen, setChosen] = useState(new Set());
  if (!page) return html`<${Trouble} error=${error} />`;
  const one = page.plan;
  const toggle = (key) => { const next = new Set(chosen); if (!next.delete(key)) next.add(key); setChosen(next); };
  return html`<article data-what=${`${one.id} ${one.goal}`}>
    <p class="path"><a href="#/plans">Plans</a> / <span class="number">${one.id}</span> <${PlanState} of=${one.state} /> ${one.epic && html`<a class="flag" href=${`#/epic/${encodeURIComponent(one.epic)}`}>epic ${one.epic}</a>`}</p>
    <h1>${one.goal}</h1><p class="about">${one.reason}</p><${Trouble} error=${error} />
    ${page.notes.map((note) => html`<p class="step needs" key=${note}>${note}</p>`)}
    ${page.questions.map((question) => html`<${Question} one=${question} key=${question.id} />`)}
    <${Decide} page=${page} chosen=${chosen} done=${() => setChosen(new Set())} />
    ${page.documents.map((document) => html`<details key=${document.stage}><summary>Specification: ${document.stage}</summary><${Prose} text=${document.text} /></details>`)}
    ${page.summary && html`<${Prose} text=${page.summary} />`}
    ${page.risks && html`<h2>Risks</h2><${Prose} text=${page.risks} />`}
    ${page.findings.length > 0 && html`<h2>Findings</h2><ul>${page.findings.map((finding, n) => html`<li key=${n}><b>${finding.kind}</b> ${finding.ticket && html`<code>${finding.ticket}</code> `}${finding.text}</li>`)}</ul>`}
    <${Facts} of=${{ tickets: page.tickets.length, "longest chain": page.chain.join(" → "), cost: estimate(page.estimate.usd, page.estimate.usd_error, dollars), time: estimate(page.estimate.seconds, page.estimate.seconds_error, duration),
      planner: page.usage ? dollars(page.usage.usd) : "", "replaces": page.drops.map((n) => `#${n}`).join(", "), rounds: page.rounds.length }} />
    ${page.tickets.map((ticket) => html`<${Proposed} key=${ticket.key} one=${ticket} chain=${page.chain.includes(ticket.key)} chosen=${chosen.has(ticket.key)} choose=${() => toggle(ticket.key)} />`)}
  </article>`;
}

const estimate = (value, error, show) => (value === null ? "unknown: too few tickets of this project have landed" : `${show(value)}${error === null ? "" : `, give or take ${Math.round(error * 100)} %`}`);

function Decide({ page, chosen, done }) {
  const one = page.plan;
  const [editing, setEditing] = useState(false);
  if (!mayAct.value || ["approved", "dropped"].includes(one.state)) return null;
  const go = (verb, body = {}) => async () => { const answer = await post(`/v1/plans/${numberOf(one.id)}/${verb}`, body, { waits: true }); done(); return answer; };
  const decidable = ["ready", "partly", "faulty"].includes(one.state);
  const approve = { tickets: [...chosen], anyway: one.state === "faulty" || page.findings.length > 0 };
  return html`<div class="actions">
    ${decidable && html`<${Act} kind="primary" ask=${page.findings.length ? `Approve although ${plural(page.findings.length, "finding")} ${page.findings.length === 1 ? "is" : "are"} left?` : undefined} run=${go("approve", approve)}>${chosen.size ? `Approve ${plural(chosen.size, "ticket")}` : "Approve all"}</${Act}>`}
    ${decidable && html`<button aria-expanded=${editing} onClick=${() => setEditing(!editing)}>Edit</button>`}
    ${one.state === "failed" && html`<${Act} kind="primary" run=${go("retry")}>Try again</${Act}>`}
    <${Act} ask="End this plan? Approved tickets stay." run=${go("drop")}>Drop</${Act}>
    ${decidable && html`<${Line} label="What should be different?" verb="Send it back" send=${(why) => go("reject", { why })()} />`}
    ${editing && html`<${Text} id=${numberOf(one.id)} close=${() => setEditing(false)} />`}</div>`;
}

function Text({ id, close }) {
  const { data, error } = useLive(() => get(`/v1/plans/${id}/text`), [id], () => false);
  // A draft is saved over the version that it was made of, and over no other.
  const [draft, setDraft] = useDraft("text", null);
  if (!data) return html`<${Trouble} error=${error} />`;
  const text = draft?.text ?? data.text;
  const change = (event) => setDraft({ text: event.target.value, version: draft?.version ?? data.version });
  const save = async () => {
    const page = await post(`/v1/plans/${id}/text`, draft);
    setDraft(null);
    close();
    return { message: `${page.plan.id} is changed.` };
  };
  return html`<${Writing} className="editor" label=${`Plan P${id}`} close=${close}><h2>P${id}</h2><${Odd} in=${odd(text)} where="This text" />
    <textarea rows="18" spellcheck="false" aria-label="The plan as TOML" value=${text} onInput=${change}></textarea>
    <div class="actions"><${Act} kind="primary" disabled=${!draft} run=${save}>Save</${Act}><button onClick=${close}>Close</button>
      ${draft && html`<${Act} ask="Discard what you changed?" run=${async () => setDraft(null)}>Discard changes</${Act}>`}</div></${Writing}>`;
}

function Proposed({ one, chain, chosen, choose }) {
  return html`<article class="receipt proposed">
    <p class="path">${one.ticket ? html`<a href=${`#/ticket/${one.ticket}`}>#${one.ticket}</a> <${State} of=${one.state} />` : mayAct.value && html`<input type="checkbox" aria-label=${`Choose ${one.key}`} checked=${chosen} onChange=${choose} />`}
      <b>${one.title}</b> <code>${one.key}</code> ${chain && html`<span class="flag needs">longest chain</span>`} ${one.after.length > 0 && html`<span class="hint">after ${one.after.join(", ")}</span>`}</p>
    <details open><summary>What it asks for</summary><${Prose} text=${one.text} />
    <ul class="evidence">${one.criteria.map((criterion, n) => html`<li key=${n}>${criterion.text} ${criterion.proof ? html`<code>${criterion.proof}</code>` : html`<span class="hint">no proof: ${criterion.why_not}</span>`}</li>`)}</ul>
    <${Facts} of=${{ files: one.files.join(", "), "new files": one.new_files.join(", "), lines: one.lines || "", labels: one.labels.join(", "), "needs your approval for": one.asks_for.join(", ") }} /></details></article>`;
}

export function Epic({ name }) {
  const cwd = cwdOf();
  const { data, error } = useLive(() => get("/v1/epics/page", { cwd, name }), [cwd, name], about);
  if (!data) return html`<${Trouble} error=${error} />`;
  return html`<article><p class="path"><a href="#/board">Board</a> / epic</p><h1>${data.name}</h1>
    <p><progress max=${data.total || 1} value=${data.done} aria-label="Progress"></progress> ${data.done} of ${plural(data.total, "ticket")} done</p>
    ${data.stages.length > 0 && html`<h2>Specification</h2><ul>${data.stages.map((stage) => html`<li key=${`${stage.plan} ${stage.stage}`}><a href=${`#/plan/${stage.plan}`}>${stage.plan}</a> ${stage.stage} <span class="state ${STAGES[stage.state] ?? "quiet"}">${stage.state}</span> <span class="hint">${stage.usd === null ? "" : dollars(stage.usd)}</span></li>`)}</ul>`}
    <${Facts} of=${{ spent: data.usage ? dollars(data.usage.usd) : "", budget: data.budget === null ? "no limit" : dollars(data.budget), landed: data.landed.length, "longest chain": data.critical_path.map((n) => `#${n}`).join(" → "), plans: data.plans.map((one) => one.id).join(", ") }} />
    ${mayAct.value && html`<div class="actions"><${Act} run=${async () => opened(await post("/v1/epics/replan", { cwd, epic: name }))}>Plan again what is left</${Act}>
      <${Act} ask="Stop every ticket of this epic?" run=${() => post("/v1/epics/stop", { cwd, epic: name })}>Stop all</${Act}>
      <${Line} label="Budget of the epic in dollars (0: none)" send=${async (usd) => { await post("/v1/epics/budget", { cwd, epic: name, usd: Number(usd) }); return { message: "The budget is set." }; }} /></div>`}
    <div class="tree">${data.tickets.map((one) => html`<a class="row" key=${one.id} href=${`#/ticket/${one.id}`} data-ticket=${one.id}><span class="number">#${one.id}</span><${State} of=${one.state} /><span class="title">${one.title}</span><span class="about">${one.reason || one.doing}</span></a>`)}</div></article>`;
}

function Templates({ cwd }) {
  const { data, error } = useLive(() => get("/v1/templates", { cwd }), [cwd], () => false);
  const [open, setOpen] = useState("");
  return html`<h2>Templates</h2><${Trouble} error=${error} /><div class="tree">${(data?.templates ?? []).map((one) => html`<div key=${one.name}>
    <button class="row" aria-expanded=${open === one.name} onClick=${() => setOpen(open === one.name ? "" : one.name)}><b>${one.name}</b><span class="about">${one.fault || one.about}</span><span class="hint">${one.origin}</span></button>
    ${open === one.name && mayAct.value && html`<${Template} cwd=${cwd} one=${one} close=${() => setOpen("")} />`}</div>`)}</div>`;
}

function Template({ cwd, one, close }) {
  const [values, setValues] = useDraft(`template ${one.name}`, {});
  const run = async () => {
    const made = await post("/v1/templates/run", { cwd, name: one.name, values });
    setValues(null);
    location.hash = `#/plan/${made.plan.plan.id}`;
    return { message: `${made.plan.plan.id}: ${plural(made.tickets.length, "ticket")} to approve.` };
  };
  return html`<${Writing} close=${close}><form class="form" onSubmit=${(event) => event.preventDefault()}>${one.variables.map((variable) => html`<label key=${variable.name}>${variable.name}
      <input value=${values[variable.name] ?? variable.default ?? ""} onInput=${(event) => setValues({ ...values, [variable.name]: event.target.value })} /><span class="hint">${variable.help}</span></label>`)}
    <div class="actions"><${Act} kind="primary" run=${run}>Make a plan of it</${Act}>
      <button type="button" onClick=${close}>Close</button></div></form></${Writing}>`;
}

function Memories({ cwd }) {
  const [version, setVersion] = useState(0);
  const { data, error } = useLive(() => get("/v1/memories", { cwd }), [cwd, version], () => false);
  const changed = async (request) => { const answer = await request; setVersion(version + 1); return answer; };
  return html`<h2>What agents should know</h2><${Trouble} error=${error} />
    <ul>${(data?.memories ?? []).map((one) => html`<li key=${one.id}>${one.text} <span class="hint">${[...one.files, ...one.labels].join(", ")} ${one.ticket ? `from #${one.ticket}` : ""} ${day(one.created_at)}</span>
      <${Act} run=${() => changed(post(`/v1/memories/${one.id}/forget`, { cwd }))}>Forget</${Act}></li>`)}</ul>
    <${Line} label="Remember for all agents of this project" send=${(text) => changed(post("/v1/memories", { cwd, text }))} />`;
}
