// Plans of goals, templates and memories: from a sentence to approved tickets.
import { html, useState } from "../lib.js";
import { useDraft } from "../writing.js";
import {
  Act,
  Acts,
  Badge,
  Empty,
  Facts,
  Flag,
  Hint,
  Items,
  Line,
  Opener,
  State,
  Step,
  TicketLink,
  Trouble,
} from "../parts.js";
import { Editor, Form } from "../fields.js";
import { cwdOf, mayAct, useRead } from "../state.js";
import { post } from "../api.js";
import { ago, spentOf, day, dollars, duration, plural } from "../format.js";
import { Question } from "./inbox.js";
import { Prose } from "../prose.js";

const STATES = { planning: "busy", ready: "good", partly: "good", reached: "good", failed: "bad" };
const NEEDS = ["asking", "written", "faulty"];
const ABOUT = /^(plan|ticket|question)\./;
const PlanState = ({ of }) => html`<${Badge} of=${of} kind=${NEEDS.includes(of) ? "needs" : STATES[of]} />`;
const numberOf = (id) => Number(id.slice(1));

export function openPlan(page) {
  location.hash = `#/plan/${page.plan.id}`;
  return { message: `${page.plan.id}: its planner reads the repository.` };
}

export function Plans() {
  const cwd = cwdOf();
  const { data, error } = useRead("/v1/plans", { cwd, all: true }, ABOUT);
  const none = "No plans yet. A planner proposes tickets; nothing runs until you approve.";
  return html`<section>
    <h1>Plans</h1>
    ${mayAct.value && html`<${Goal} cwd=${cwd} />`}<${Trouble} error=${error} />
    ${data?.plans.length === 0 && html`<${Empty}>${none}</${Empty}>`}
    <div class="tree">${(data?.plans ?? []).map((one) => html`<${Row} key=${one.id} one=${one} />`)}</div>
    <${Templates} cwd=${cwd} /><${Memories} cwd=${cwd} />
  </section>`;
}

const Row = ({ one }) =>
  html`<a class="row" href=${`#/plan/${one.id}`}>
    <span class="number">${one.id}</span><${PlanState} of=${one.state} /><span class="title">${one.goal}</span>
    <span class="about">${one.reason || `${plural(one.tickets, "ticket")}, ${one.approved} approved`}</span>
    <span class="age">${ago(one.moved_at)}</span>
  </a>`;

const GOAL = { name: "goal", label: "Goal", kind: "long", placeholder: "What should be true when it is done?" };
const MORE = [
  { name: "team", label: "Team" },
  { name: "model", label: "Its model" },
  { name: "budget", label: "Budget in dollars", kind: "number" },
];
const check = (name, label) => ({ name, label, kind: "check" });
const QUESTIONS = check("questions", "The planner may ask you first");
const SPEC = { name: "depth", label: "Specification", kind: "choice", choices: ["", "auto", "short", "full"] };
const WRITTEN = [check("stops", "It waits for me"), check("keep", "It lands, too")];

function Goal({ cwd }) {
  const draft = useDraft("goal", { goal: "" }, { lasting: true });
  const send = async ({ budget, stops, keep: kept, ...more }) => {
    const written = { stop_at: more.depth && stops ? "spec" : "", keep_docs: Boolean(more.depth && kept) };
    return openPlan(await post("/v1/plans", { cwd, ...more, ...written, budget: budget ? Number(budget) : null }));
  };
  const fields = [GOAL, { more: MORE }, QUESTIONS, SPEC, ...(draft[0].depth ? WRITTEN : [])];
  return html`<${Form} fields=${fields} keep=${draft} needs=${["goal"]} disabled=${!cwd} verb="Plan it"
    send=${send} />`;
}

export function Plan({ id }) {
  const { data: page, error } = useRead(`/v1/plans/${id}`, {}, ABOUT);
  const [chosen, setChosen] = useState(new Set());
  if (!page) return html`<${Trouble} error=${error} />`;
  const one = page.plan;
  const toggle = (key) => {
    const next = new Set(chosen);
    if (!next.delete(key)) next.add(key);
    setChosen(next);
  };
  const finding = ({ kind, ticket, text }) => html`<b>${kind}</b> ${ticket && html`<code>${ticket}</code> `}${text}`;
  return html`<article data-what=${`${one.id} ${one.goal}`}>
    <p class="path">
      <a href="#/plans">Plans</a> / <span class="number">${one.id}</span> <${PlanState} of=${one.state} /> ${""}
      ${one.epic && html`<a class="flag" href=${`#/epic/${encodeURIComponent(one.epic)}`}>epic ${one.epic}</a>`}
    </p>
    <h1>${one.goal}</h1>
    <p class="about">${one.reason}</p>
    <${Trouble} error=${error} />${page.notes.map((note) => html`<${Step} key=${note} of=${note} />`)}
    ${page.questions.map((question) => html`<${Question} one=${question} key=${question.id} />`)}
    <${Decide} page=${page} chosen=${chosen} done=${() => setChosen(new Set())} />
    ${page.documents.map(
      ({ stage, text }, n) =>
        html`<${Folded} key=${stage} name=${`Specification: ${stage}`} text=${text}
          open=${one.state === "written" && !page.documents[n + 1]} />`,
    )}
    ${page.summary && html`<${Prose} text=${page.summary} />`}
    ${page.risks && html`<h2>Risks</h2><${Prose} text=${page.risks} />`}
    <${Points} of=${page.points} /><${Items} name="Findings" of=${page.findings} row=${finding} />
    <${Facts} of=${factsOf(page)} />
    ${page.tickets.map(
      (ticket) => html`<${Proposed} key=${ticket.key} one=${ticket} chain=${page.chain.includes(ticket.key)}
        chosen=${chosen.has(ticket.key)} choose=${() => toggle(ticket.key)} />`,
    )}
  </article>`;
}

const FOUND = { done: "good", missing: "bad", different: "needs" };
const RAN = { green: "passes", red: "fails" };

export const Points = ({ of }) => {
  const point = ({ state, text, proof, tried, evidence }) =>
    html`<${Badge} of=${state} kind=${FOUND[state]} /> ${text} <code>${proof}</code> ${""}
      <${Hint} of=${RAN[tried] ?? tried} /> <${Hint} of=${evidence} />`;
  return html`<${Items} name="What the last reader found" className="evidence" of=${of} row=${point} />`;
};

const Folded = ({ name, text, open }) =>
  html`<details open=${open}><summary>${name}</summary><${Prose} text=${text} /></details>`;
const factsOf = ({ tickets, chain, estimate, usage, drops, rounds, depth }) => ({
  "by rule": depth,
  tickets: tickets.length,
  "longest chain": chain.join(" → "),
  cost: about(estimate.usd, estimate.usd_error, dollars),
  time: about(estimate.seconds, estimate.seconds_error, duration),
  planner: usage ? spentOf(usage) : "",
  replaces: drops.map((n) => `#${n}`).join(", "),
  rounds: rounds.length,
  "written by": AUTHORS[rounds.findLast((one) => one.usable)?.author] ?? "",
});
const AUTHORS = {
  planner: "a planner; files of this repository may have put words there",
  person: "a person",
  template: "a template, with values of this repository",
};

function about(value, error, show) {
  if (value === null) return "unknown: too few tickets have landed";
  return `${show(value)}${error === null ? "" : `, give or take ${Math.round(error * 100)} %`}`;
}

// What can be done with a plan now, as the daemon offers it.
function Decide({ page, chosen, done }) {
  const one = page.plan;
  const [editing, setEditing] = useState(false);
  if (!mayAct.value) return null;
  const at = `/v1/plans/${numberOf(one.id)}`;
  const go = async (verb, body = {}) => {
    const answer = await post(`${at}/${verb}`, body, { waits: true });
    done();
    return answer;
  };
  const may = (name) => one.offers.includes(name);
  const left = page.findings.length;
  const isText = one.state === "written";
  const acts = [
    {
      offer: "approve_plan",
      words: isText ? "Plan from it" : `Approve ${chosen.size ? plural(chosen.size, "ticket") : "all"}`,
      kind: "primary",
      ask: left && `Approve with ${plural(left, "finding")} left?`,
      run: () => go("approve", { tickets: [...chosen], anyway: left > 0 }),
    },
    { offer: "retry_plan", words: "Try again", kind: "primary", run: () => go("retry") },
    { offer: "drop_plan", words: "Drop", ask: "Drop it? Approved tickets stay.", run: () => go("drop") },
  ];
  const save = async (draft) => {
    await post(`${at}/text`, draft);
    return { message: `${one.id} is changed.` };
  };
  const toggle = () => setEditing(!editing);
  return html`<${Acts} of=${acts} offers=${one.offers}>
    ${may("save_plan") && html`<${Opener} open=${editing} toggle=${toggle}>Edit</${Opener}>`}
    ${
      may("reject_plan") &&
      html`<${Line} label="What should be different?" verb="Send it back" send=${(why) => go("reject", { why })} />`
    }
    ${editing && html`<${Text} name=${one.id} at=${at} save=${save} close=${toggle} />`}
  </${Acts}>`;
}

const Text = ({ name, at, ...more }) =>
  html`<${Editor} read=${useRead(`${at}/text`)} draft="text" label=${`Plan ${name}`} title=${name} rows="18"
    box="Its text" ...${more} />`;

function Proposed({ one, chain, chosen, choose }) {
  const box = html`<input type="checkbox" aria-label=${`Choose ${one.key}`} checked=${chosen} onChange=${choose} />`;
  const criterion = ({ text, proof, why_not: why, tried }) =>
    html`${text} ${proof ? html`<code>${proof}</code>` : html`<span class="hint">no proof: ${why}</span>`}
      <${Hint} of=${!["", "red", "green"].includes(tried) && `not tried: ${tried}`} />`;
  const facts = {
    files: one.files.join(", "),
    "new files": one.new_files.join(", "),
    lines: one.lines || "",
    labels: one.labels.join(", "),
    "may ask you": one.asks_for.join(", "),
  };
  return html`<article class="receipt proposed">
    <p class="path">
      ${one.ticket ? html`<${TicketLink} id=${one.ticket} /> <${State} of=${one.state} />` : mayAct.value && box} ${""}
      <b>${one.title}</b> <code>${one.key}</code> <${Flag} of=${chain && "longest chain"} kind="needs" /> ${""}
      <${Hint} of=${one.after.length > 0 && `after ${one.after.join(", ")}`} />
    </p>
    <details open>
      <summary>What it asks for</summary><${Prose} text=${one.text} />
      ${one.context && html`<h3>Context</h3><${Prose} text=${one.context} />`}
      ${one.plan && html`<h3>Approach</h3><${Prose} text=${one.plan} />`}
      <${Items} className="evidence" of=${one.criteria} row=${criterion} /><${Facts} of=${facts} />
    </details>
  </article>`;
}

function Templates({ cwd }) {
  const { data, error } = useRead("/v1/templates", { cwd });
  const [open, setOpen] = useState("");
  const row = (one) => html`<div key=${one.name}>
    <button class="row" aria-expanded=${open === one.name} onClick=${() => setOpen(open === one.name ? "" : one.name)}>
      <b>${one.name}</b><span class="about">${one.fault || one.about}</span><span class="hint">${one.origin}</span>
    </button>
    ${open === one.name && mayAct.value && html`<${Template} cwd=${cwd} one=${one} close=${() => setOpen("")} />`}
  </div>`;
  return html`<h2>Templates</h2><${Trouble} error=${error} /><div class="tree">${data?.templates.map(row)}</div>`;
}

function Template({ cwd, one, close }) {
  const fields = one.variables.map(({ name, help }) => ({ name, label: name, hint: help }));
  const start = Object.fromEntries(one.variables.map((variable) => [variable.name, variable.default ?? undefined]));
  const run = async (values) => {
    const made = await post("/v1/templates/run", { cwd, name: one.name, values });
    location.hash = `#/plan/${made.plan.plan.id}`;
    return { message: `${made.plan.plan.id}: ${plural(made.tickets.length, "ticket")} to approve.` };
  };
  return html`<${Form} name=${`${cwd} template ${one.name}`} fields=${fields} start=${start} verb="Make a plan of it"
    send=${run} close=${close} />`;
}

function Memories({ cwd }) {
  const { data, error } = useRead("/v1/memories", { cwd });
  const about = (one) =>
    `${[...one.files, ...one.labels].join(", ")} ${one.ticket ? `from #${one.ticket}` : ""} ${day(one.created_at)}`;
  const forget = (one) => html`<${Act} run=${() => post(`/v1/memories/${one.id}/forget`, { cwd })}>Forget</${Act}>`;
  return html`
    <h2>What agents should know</h2>
    <${Trouble} error=${error} />
    <ul>
      ${(data?.memories ?? []).map(
        (one) => html`<li key=${one.id}>${one.text} <${Hint} of=${about(one)} /> ${forget(one)}</li>`,
      )}
    </ul>
    <${Line} to=${cwd} label="Remember for all agents of this project"
      send=${(text) => post("/v1/memories", { cwd, text })} />
  `;
}
