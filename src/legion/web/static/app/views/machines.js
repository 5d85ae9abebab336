// Machines that run tickets for this Legion: what each does, and how to let one in.
import { html, useState } from "../lib.js";
import { useDraft } from "../writing.js";
import { Act, Empty, Trouble } from "../parts.js";
import { isFull, useLive } from "../state.js";
import { get, post } from "../api.js";
import { ago, plural } from "../format.js";

const KINDS = { open: "good", paused: "needs", draining: "needs", quiet: "quiet", silent: "bad", outdated: "bad", "disk full": "bad" };

export function Machines() {
  const { data, error } = useLive(() => get("/v1/machines"), [], (one) => /^(machine|run)\./.test(one.kind));
  const [invitation, setInvitation] = useState(null);
  if (!data) return html`<${Trouble} error=${error} />`;
  const others = data.machines.filter((one) => !one.head);
  const go = (one, verb, body = {}) => () => post(`/v1/machines/${encodeURIComponent(one.name)}/${verb}`, body, { waits: true });
  return html`<section><h1>Machines</h1><${Trouble} error=${error} />
    ${!others.length && html`<${Empty}>Everything runs on this machine. Let another one in, and tickets run there, too.</${Empty}>`}
    ${data.machines.map((one) => html`<article class="project" key=${one.name} tabindex=${one.head ? undefined : "-1"} data-what=${one.name}><h2>${one.name} <span class="state ${KINDS[one.state] ?? "quiet"}">${one.state}</span> ${one.head && html`<span class="flag">this Legion</span>`} ${one.labels.map((label) => html`<span class="flag" key=${label}>${label}</span>`)}</h2>
      <p class="hint">${one.runs} of ${plural(one.slots, "slot")} taken, version ${one.version}${one.heard_at ? `, last report ${ago(one.heard_at)} ago` : ""}${one.quiet_hours ? `, quiet ${one.quiet_hours}` : ""}</p>
      ${one.advice && html`<p class="step needs">${one.advice}</p>`}
      ${!one.head && html`<div class="actions">
        ${one.state === "paused" || one.state === "draining" ? html`<${Act} keys="p" kind="primary" run=${go(one, "resume")}>Resume</${Act}>` : html`<${Act} keys="p" run=${go(one, "pause")}>Pause</${Act}><${Act} run=${go(one, "drain")}>Drain</${Act}>`}
        ${isFull.value && html`<${Act} keys="u" run=${go(one, "update")}>Update</${Act}><${Act} keys="d" ask=${`Remove ${one.name}? Its token opens nothing from then on. Drain it first if it has runs.`} run=${go(one, "remove")}>Remove</${Act}>`}</div>`}</article>`)}
    ${isFull.value && html`<h2>Let a machine in</h2><${Invite} done=${setInvitation} />`}
    ${invitation && html`<p>Run this there within ${plural(Math.max(1, Math.round((invitation.ends_at - Date.now() / 1000) / 60)), "minute")}:</p><pre class="output short" tabindex="0">legion machine join '${invitation.line}'</pre>`}</section>`;
}

const LOOPBACK = /^(127\.|localhost$|\[::1\]$)/;

function Invite({ done }) {
  const [name, setName] = useDraft("name");
  const [host, setHost] = useDraft("host", LOOPBACK.test(location.hostname) ? "" : location.hostname);
  const invite = async () => {
    done(await post("/v1/machines", { name: name.trim(), host: host.trim() }, { waits: true }));
    setName(null);
    return { message: `${name.trim()} can join now, once.` };
  };
  return html`<form class="form" onSubmit=${(event) => event.preventDefault()}>
    <div class="fields"><label>Its name<input value=${name} onInput=${(event) => setName(event.target.value)} placeholder="desk" /></label>
      <label>Legion's address<input value=${host} onInput=${(event) => setHost(event.target.value)} placeholder="as the machine reaches it" /></label></div>
    <p class="hint">The address is needed for the first machine; later ones use the same.</p>
    <div class="actions"><${Act} kind="primary" disabled=${!name.trim()} run=${invite}>Invite</${Act}></div></form>`;
}
