// Machines that run tickets for this Legion: what each does, and how to let one in.
import { html, useState } from "../lib.js";
import { Acts, Badge, Empty, Flag, Output, Step, Trouble } from "../parts.js";
import { Form } from "../fields.js";
import { isFull, useRead } from "../state.js";
import { post } from "../api.js";
import { ago, plural } from "../format.js";

const KINDS = { open: "good", paused: "needs", draining: "needs", silent: "bad", outdated: "bad", "disk full": "bad" };
const LOOPBACK = /^(127\.|localhost$|\[::1\]$)/;

export function Machines() {
  const { data, error } = useRead("/v1/machines", {}, /^(machine|run)\./);
  const [invitation, setInvitation] = useState(null);
  if (!data) return html`<${Trouble} error=${error} />`;
  const minutes = invitation && Math.max(1, Math.round((invitation.ends_at - Date.now() / 1000) / 60));
  return html`<section>
    <h1>Machines</h1>
    <${Trouble} error=${error} />${data.machines.every((one) => one.head) && html`<${Empty}>${ALONE}</${Empty}>`}
    ${data.machines.map((one) => html`<${Machine} key=${one.name} one=${one} />`)}
    ${isFull.value && html`<h2>Let a machine in</h2><${Invite} done=${setInvitation} />`}
    ${minutes && html`<p>Run this there within ${plural(minutes, "minute")}:</p>`}
    ${minutes && html`<${Output} of=${`legion machine join '${invitation.line}'`} />`}
  </section>`;
}

const ALONE = "Everything runs on this machine. Let another one in, and tickets run there, too.";

function Machine({ one }) {
  const at = (verb) => `/v1/machines/${encodeURIComponent(one.name)}/${verb}`;
  const rests = one.offers.includes("resume_machine");
  const act = (offer, verb, words, more = {}) => ({ offer, at: at(verb), words, ...more });
  const remove = `Remove ${one.name}? Its token opens nothing from then on. Drain it first if it has runs.`;
  const acts = [
    act("resume_machine", "resume", "Resume", { keys: rests ? "p" : undefined, kind: "primary" }),
    act("pause_machine", "pause", "Pause", { keys: rests ? undefined : "p" }),
    act("drain_machine", "drain", "Drain"),
    isFull.value && act("update_machine", "update", "Update", { keys: "u" }),
    isFull.value && act("remove_machine", "remove", "Remove", { keys: "d", ask: remove }),
  ];
  const heard = one.heard_at ? `, last report ${ago(one.heard_at)} ago` : "";
  return html`<article class="project" tabindex=${one.head ? undefined : "-1"} data-what=${one.name}>
    <h2>
      ${one.name} <${Badge} of=${one.state} kind=${KINDS[one.state]} /> ${""}
      <${Flag} of=${one.head && "this Legion"} /> ${""}
      ${one.labels.map((label) => html`<${Flag} key=${label} of=${label} />`)}
    </h2>
    <p class="hint">
      ${one.runs} of ${plural(one.slots, "slot")} taken, version ${one.version}${heard}
      ${one.quiet_hours ? `, quiet ${one.quiet_hours}` : ""}
    </p>
    <${Step} of=${one.advice} />${!one.head && html`<${Acts} of=${acts} offers=${one.offers} />`}
  </article>`;
}

function Invite({ done }) {
  const invite = async ({ name, host }) => {
    done(await post("/v1/machines", { name: name.trim(), host: host.trim() }, { waits: true }));
    return { message: `${name.trim()} can join now, once.` };
  };
  const fields = [
    { name: "name", label: "Its name", placeholder: "desk" },
    { name: "host", label: "Legion's address", placeholder: "as the machine reaches it" },
  ];
  const start = { name: "", host: LOOPBACK.test(location.hostname) ? "" : location.hostname };
  return html`<${Form} name="invite" fields=${[fields]} start=${start} needs=${["name"]} verb="Invite" send=${invite}>
    <p class="hint">The address is needed for the first machine; later ones use the same.</p>
  </${Form}>`;
}
