// Standing agents as a tree, their mail, and what can be said to them.
import { html, useState } from "../lib.js";
import { Acts, Empty, Facts, Flag, Hint, Line, Opener, Trouble, Working } from "../parts.js";
import { Form } from "../fields.js";
import { cwdOf, mayAct, useLive, useRead } from "../state.js";
import { post } from "../api.js";
import { ago, day, dollars, plural } from "../format.js";
import { Prose } from "../prose.js";

const ABOUT = /^(agent|mail|run|plan)\./;
const readMail = (body, deps) =>
  useLive(
    () => post("/v1/mail", { ...body, all: true }),
    deps,
    (one) => ABOUT.test(one.kind),
  );
const HIRE = [
  { name: "task", label: "Task", kind: "long", placeholder: "What it is responsible for" },
  [
    { name: "name", label: "Name" },
    { name: "role", label: "Role" },
    { name: "model", label: "Model" },
    { name: "budget", label: "Budget in dollars", kind: "number" },
  ],
];
const REJECT = "Its plan: what should be different?";
const NONE =
  "No standing agents. Tickets get agents of their own; a standing agent stays, reads mail, and can lead others.";

export function Agents() {
  const { data, error } = useRead("/v1/agents", {}, ABOUT);
  const [hiring, setHiring] = useState(false);
  if (!data) return html`<${Trouble} error=${error} />`;
  const below = (parent, depth) =>
    data.agents.filter((one) => one.parent === parent).flatMap((one) => [[one, depth], ...below(one.id, depth + 1)]);
  const rows = below(data.you, 0);
  const toggle = () => setHiring(!hiring);
  return html`<section>
    <div class="toolbar">
      ${
        mayAct.value &&
        html`<${Opener} open=${hiring} toggle=${toggle} kind="primary" keys="H">Hire an agent</${Opener}>`
      }
      <a href="#/mail">Your mail</a>
    </div>
    ${hiring && html`<${Hire} close=${() => setHiring(false)} />`}${!rows.length && html`<${Empty}>${NONE}</${Empty}>`}
    <div class="tree">${rows.map(([one, depth]) => html`<${Row} key=${one.id} one=${one} depth=${depth} />`)}</div>
  </section>`;
}

const Row = ({ one, depth }) =>
  html`<a class="row" href=${`#/agent/${one.id}`} style=${{ paddingLeft: `${8 + depth * 22}px` }}>
    <${Working} of=${one.working} /><b>${one.name || one.id}</b><span>${one.role}</span>
    <span class="about">${one.doing}</span><${Flag} of=${one.waiting > 0 && plural(one.waiting, "message")} />
    <span>${dollars(one.spent)}</span>
  </a>`;

function Hire({ close }) {
  const hire = async (form) => {
    const budget = form.budget ? Number(form.budget) : null;
    const hired = await post("/v1/agents", { name: "", role: "", model: "", ...form, cwd: cwdOf(), budget });
    close();
    return hired;
  };
  return html`<${Form} name="hire" fields=${HIRE} needs=${["task"]} verb="Hire" send=${hire} close=${close} />`;
}

export function Agent({ id }) {
  const { data, error } = useRead(`/v1/agents/${encodeURIComponent(id)}`, {}, ABOUT);
  const mail = readMail({ agent: id }, [id]);
  if (!data) return html`<${Trouble} error=${error} />`;
  const one = data.agent;
  const verdict = (approve, why) => post("/v1/agents/verdict", { agent: one.id, approve, why });
  const tell = (text) => post("/v1/agents/tell", { to: one.id, text }, { waits: true });
  const fire = async () => {
    const fired = await post("/v1/agents/fire", { id: one.id });
    location.hash = "#/agents";
    return fired;
  };
  const interrupt = () => post("/v1/agents/interrupt", { id: one.id }, { waits: true });
  const delegate = () => post("/v1/agents/delegate", { id: one.id, on: !one.delegate });
  const decides = one.offers.includes("decide_plan");
  const lead = one.delegate ? "Let it work itself" : "Let it only lead";
  const acts = [
    { offer: "interrupt_agent", words: "Interrupt", keys: "x", ask: "Interrupt it?", run: interrupt },
    { offer: "delegate", words: lead, keys: "d", run: delegate },
    { offer: "decide_plan", words: "Approve its plan", keys: "a", run: () => verdict(true) },
    { offer: "fire", words: "Fire", keys: "F", ask: "Fire it? Its work is saved.", run: fire },
  ];
  const money = (usd) => (usd === null ? "" : dollars(usd));
  const facts = {
    role: one.role,
    model: one.model,
    "reports to": named(one.parent),
    budget: money(one.budget),
    left: money(one.left),
  };
  const more = { spent: dollars(one.spent), worktree: data.worktree, hired: day(one.hired_at) };
  return html`<article data-what=${one.name || one.id}>
    <p class="path"><a href="#/agents">Agents</a> / ${one.id}</p>
    <h1>${one.name || one.id} <${Working} of=${one.working} /></h1>
    <p class="about">${one.doing}</p>
    <${Acts} of=${acts} offers=${one.offers} />
    ${decides && html`<${Line} keys="e" label=${REJECT} verb="Reject its plan" send=${(why) => verdict(false, why)} />`}
    <${Line} keys="i" label="Send it a message" send=${tell} />
    <h2>Task</h2>
    <${Prose} text=${data.task} /><${Facts} of=${{ ...facts, ...more }} />
    <h2>Mail</h2>
    <${Messages} data=${mail.data} />
  </article>`;
}

export function Mail() {
  const { data, error } = readMail({}, []);
  return html`<section><h1>Your mail</h1><${Trouble} error=${error} /><${Messages} data=${data} /></section>`;
}

const named = (agent) => (agent === "root" ? "you" : agent);

function Messages({ data }) {
  if (!data?.messages.length) return html`<${Empty}>No messages.</${Empty}>`;
  const row = (one) => html`<li key=${one.id}>
    <header>
      <b>${named(one.sender_name || one.sender)}</b> to ${named(one.recipient_name || one.recipient)} ${""}
      <${Hint} of=${`${one.kind}, ${one.delivery}, ${ago(one.sent_at)} ago`} />
    </header>
    <${Prose} text=${one.text} />
  </li>`;
  return html`<ol class="mail">${[...data.messages].reverse().map(row)}</ol>`;
}
