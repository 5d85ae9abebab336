// The conversation with a project's leader: its messages, what it writes now, its open notes.
import { html, useEffect, useRef, useState } from "../lib.js";
import { Act, Empty, Line, Trouble } from "../parts.js";
import { board, mayAct, project, useLive } from "../state.js";
import { post } from "../api.js";
import { followAll } from "../output.js";
import { amount, clock, dollars, plain } from "../format.js";
import { Prose } from "../prose.js";

const cwdOf = () => project.value || board.value?.projects[0]?.root || "";
const about = (one) => /^(mail|agent|run|note)\./.test(one.kind);

export function Chat() {
  const cwd = cwdOf();
  const { data, error } = useLive(() => post("/v1/leader/conversation", { cwd }), [cwd], about);
  const writing = useWriting(cwd, data?.leader?.id);
  const end = useRef(null);
  useEffect(() => end.current?.scrollIntoView({ block: "nearest" }), [data?.messages.length, writing]);
  if (!data) return html`<${Trouble} error=${error} />`;
  if (!data.leader) return html`<${NoLeader} cwd=${cwd} />`;
  const one = data.leader;
  return html`<section class="chat">
    <p class="path"><a href=${`#/agent/${encodeURIComponent(one.id)}`}>${one.name || one.id}</a> <span class="state ${one.working ? "busy" : "quiet"}">${one.working ? "at work" : "idle"}</span>
      <span class="hint">${dollars(one.spent)}${data.tokens ? `, ${amount(data.tokens)} of ${amount(data.handover_tokens)} tokens` : ""}${data.approves ? ", may approve plans" : ""}${data.answers ? ", may answer agents" : ""}</span></p>
    <${Trouble} error=${error} />
    ${!data.messages.length && html`<${Empty}>Nothing said yet. Tell it a goal, or ask what is going on.</${Empty}>`}
    <ol class="messages">${data.messages.map((message) => html`<li key=${message.id} class=${message.kind === "notice" ? "notice" : message.sender === one.id ? "theirs" : "mine"}><${Prose} text=${message.text} /><span class="hint">${clock(message.sent_at)}${message.delivery === "waiting" ? ", waits for its next turn" : ""}</span></li>`)}</ol>
    ${writing && html`<pre class="output tail" tabindex="0" aria-label="What it writes now">${writing}</pre>`}
    <span ref=${end}></span>
    <${Line} label=${`Write to ${one.name || one.id}`} send=${(text) => post("/v1/agents/tell", { to: one.id, text }, { waits: true })} />
    ${data.notes.length > 0 && html`<details><summary>Open notes: ${data.notes.length}</summary><ul>${data.notes.map((note, n) => html`<li key=${n}>${note}</li>`)}</ul></details>`}
  </section>`;
}

// The last lines of its turn, while it has one.
function useWriting(cwd, leader) {
  const [text, setText] = useState("");
  useEffect(() => {
    setText("");
    if (!leader || !mayAct.value) return undefined;
    return followAll(cwd, (running, texts) => {
      const turn = running.find((one) => one.agent === leader);
      setText(turn ? plain(texts.get(turn.run) ?? "").trimEnd().split("\n").slice(-12).join("\n") : "");
    });
  }, [cwd, leader]);
  return text;
}

function NoLeader({ cwd }) {
  return html`<section><${Empty}>This project has no leader. A leader plans, dispatches, watches, answers its agents within what you allow, and tells you what matters.</${Empty}>
    ${mayAct.value && html`<div class="actions">
    <${Act} kind="primary" disabled=${!cwd} run=${() => post("/v1/agents", { task: "Lead this project: plan its goals, dispatch tickets, watch them, and report to me.", name: "leader", role: "leader", cwd })}>Hire a leader</${Act}>
    <a class="button" href="#/new">Write a ticket</a> <a class="button" href="#/plans">Plan a goal</a></div>`}</section>`;
}
