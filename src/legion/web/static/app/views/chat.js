// The conversation with a project's leader: its messages, what it writes now, its open notes.
import { html, useEffect, useRef, useState } from "../lib.js";
import { Acts, Empty, Hint, Line, Output, Trouble, Working } from "../parts.js";
import { cwdOf, mayAct, useLive } from "../state.js";
import { post } from "../api.js";
import { followAll } from "../output.js";
import { amount, clock, dollars, lastLines } from "../format.js";
import { Prose } from "../prose.js";

const NONE =
  "This project has no leader. A leader plans, dispatches, watches, answers its agents within what you allow, " +
  "and tells you what matters.";
const TASK = "Lead this project: plan its goals, dispatch tickets, watch them, and report to me.";
const ABOUT = /^(mail|agent|run|note)\./;

export function Chat() {
  const cwd = cwdOf();
  const { data, error } = useLive(
    () => post("/v1/leader/conversation", { cwd }),
    [cwd],
    (one) => ABOUT.test(one.kind),
  );
  const writing = useWriting(cwd, data?.leader?.id);
  const end = useRef(null);
  useEffect(() => end.current?.scrollIntoView({ block: "nearest" }), [data?.messages.length, writing]);
  if (!data) return html`<${Trouble} error=${error} />`;
  if (!data.leader) return html`<${NoLeader} cwd=${cwd} />`;
  const one = data.leader;
  const tokens = data.tokens ? `, ${amount(data.tokens)} of ${amount(data.handover_tokens)} tokens` : "";
  const may = `${data.approves ? ", may approve plans" : ""}${data.answers ? ", may answer agents" : ""}`;
  const whose = ({ kind, sender }) => (kind === "notice" ? kind : sender === one.id ? "theirs" : "mine");
  const message = (said) => html`<li key=${said.id} class=${whose(said)}>
    <${Prose} text=${said.text} />
    <${Hint} of=${`${clock(said.sent_at)}${said.delivery === "waiting" ? ", waits for its next turn" : ""}`} />
  </li>`;
  const tell = (text) => post("/v1/agents/tell", { to: one.id, text }, { waits: true });
  return html`<section class="chat">
    <p class="path">
      <a href=${`#/agent/${encodeURIComponent(one.id)}`}>${one.name || one.id}</a> ${""}
      <${Working} of=${one.working} /> ${""}<${Hint} of=${`${dollars(one.spent)}${tokens}${may}`} />
    </p>
    <${Trouble} error=${error} />
    ${!data.messages.length && html`<${Empty}>Nothing said yet. Tell it a goal, or ask what is going on.</${Empty}>`}
    <ol class="messages">${data.messages.map(message)}</ol>
    ${writing && html`<${Output} kind="tail" label="What it writes now" of=${writing} />`}<span ref=${end}></span>
    <${Line} label=${`Write to ${one.name || one.id}`} to=${one.id} send=${tell} />
    ${data.notes.length > 0 && html`<${Notes} of=${data.notes} />`}
  </section>`;
}

const Notes = ({ of }) =>
  html`<details>
    <summary>Open notes: ${of.length}</summary>
    <ul>${of.map((note, n) => html`<li key=${n}>${note}</li>`)}</ul>
  </details>`;

// The last lines of its turn, while it has one.
function useWriting(cwd, leader) {
  const [text, setText] = useState("");
  useEffect(() => {
    setText("");
    if (!leader || !mayAct.value) return undefined;
    return followAll(cwd, (running, texts) => {
      const turn = running.find((one) => one.agent === leader);
      setText(turn ? lastLines(texts.get(turn.run), 12) : "");
    });
  }, [cwd, leader]);
  return text;
}

function NoLeader({ cwd }) {
  const hire = { at: "/v1/agents", body: { task: TASK, name: "leader", role: "leader", cwd } };
  const links = html`<a class="button" href="#/new">Write a ticket</a><a class="button" href="#/plans">Plan a goal</a>`;
  return html`<section>
    <${Empty}>${NONE}</${Empty}>
    ${
      mayAct.value &&
      html`<${Acts} of=${[{ words: "Hire a leader", kind: "primary", disabled: !cwd, ...hire }]}>${links}</${Acts}>`
    }
  </section>`;
}
