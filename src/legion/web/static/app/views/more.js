// Projects and their checkup, teams and roles, all events.
import { html, useState } from "../lib.js";
import { Acts, Badge, Baseline, Flag, Hint, Line, Output, Rows, TicketLink, Trouble } from "../parts.js";
import { Editor } from "../fields.js";
import { board, choose, cwdOf, isFull, project, useRead } from "../state.js";
import { post } from "../api.js";
import { clock, day } from "../format.js";

export function Projects() {
  const { data, error } = useRead("/v1/doctor", { cwd: cwdOf() }, /^project\./);
  const finding = (one) => html`<li key=${one.name}>
    <${Badge} of=${one.ok ? "ok" : "!"} kind=${one.ok ? "good" : "bad"} /> <b>${one.name}</b> ${one.detail} <${Hint}
      of=${one.advice} />
  </li>`;
  return html`<section>
    <h1>Projects</h1>
    ${(board.value?.projects ?? []).map((one) => html`<${Project} key=${one.root} one=${one} />`)}
    <h2>Checkup</h2>
    <${Trouble} error=${error} />
    <ul class="findings">${(data?.findings ?? []).map(finding)}</ul>
  </section>`;
}

function Project({ one }) {
  const act = (verb, more) => ({ at: `/v1/project/${verb}`, body: { cwd: one.root }, ...more });
  const acts = [
    one.paused ? act("resume", { words: "Resume" }) : act("pause", { words: "Pause" }),
    act("stop", { words: "Stop all", ask: `Stop every ticket of ${one.name}?` }),
    act("drop", { words: "Clear ended", keys: "D", ask: "Remove every ended ticket from the board?" }),
  ];
  const only = html`<button key="only" onClick=${() => choose(one.root)} disabled=${project.value === one.root}>
    Show only this
  </button>`;
  return html`<article class="project" data-what=${one.name}>
    <h2>${one.name} <${Baseline} of=${one.baseline} /></h2>
    <p class="hint">${one.root}, branch ${one.branch}</p>
    <${Acts} of=${[only, ...acts]} />${!one.trusted && html`<${Trusting} root=${one.root} />`}
  </article>`;
}

function Trusting({ root }) {
  const { data, error } = useRead("/v1/project/trustable", { cwd: root }, /^project\./);
  const open = (data?.texts ?? []).filter((one) => !one.trusted);
  const body = { cwd: root, hashes: open.map((one) => one.hash) };
  const trust = {
    words: "Trust what is shown",
    kind: "primary",
    ask: "Let these commands run?",
    at: "/v1/project/trust",
    body,
  };
  const text = (one) => html`<div key=${one.hash}>
    <h3>${one.file} <${Hint} of=${one.place} /></h3>
    <${Output} of=${one.text} />
  </div>`;
  return html`
    <${Trouble} error=${error} />${open.map(text)}${open.length > 0 && isFull.value && html`<${Acts} of=${[trust]} />`}
  `;
}

export function Teams() {
  const query = { cwd: cwdOf() };
  const teams = useRead("/v1/teams", query);
  const roles = useRead("/v1/roles", query);
  const [open, setOpen] = useState(null);
  const row = (room, one, ...more) =>
    html`<button class="row" key=${one.name} aria-expanded=${open?.[0] === room && open[1] === one.name}
      onClick=${() => setOpen([room, one.name])}>
      <b>${one.name}</b>${more}<span class="hint">${one.origin}</span>
    </button>`;
  const about = (one) => html`<span class="about">${one.fault || one.about}</span>`;
  const team = (one) =>
    row(
      "teams",
      one,
      html`<${Flag} of=${one.default && "default"} />`,
      html`<span>${one.roles.join(" → ")}</span>`,
      about(one),
    );
  const role = (one) =>
    row("roles", one, html`<${Flag} of=${one.part} />`, about(one), html`<span>${one.model}</span>`);
  const write = (room, word) =>
    html`<${Line} key=${room} label=${`Name of a new ${word}`} verb=${`Write the ${word}`}
      send=${async (name) => setOpen([room, name, true])} />`;
  return html`<section>
    <h1>Teams and roles</h1>
    <${Trouble} error=${teams.error} />
    <h2>Teams</h2>
    <div class="tree">${(teams.data?.teams ?? []).map(team)}</div>
    <h2>Roles</h2>
    <div class="tree">${(roles.data?.roles ?? []).map(role)}</div>
    ${isFull.value && html`<div>${write("roles", "role")}${write("teams", "team")}</div>`}
    ${
      open &&
      html`<${Definition} key=${open.join()} room=${open[0]} name=${open[1]} fresh=${open[2]}
        close=${() => setOpen(null)} />`
    }
  </section>`;
}

function Definition({ room, name, fresh = false, close }) {
  const read = useRead(`/v1/${room}/text`, { cwd: cwdOf(), name, new: fresh });
  const title = html`${name} <${Hint} of=${read.data?.file} />`;
  const save = ({ text }) => post(`/v1/${room}`, { cwd: cwdOf(), name, text, new: fresh });
  return html`<${Editor} read=${read} draft=${`${cwdOf()} ${room} ${name}`} label=${name} title=${title} box="Its file"
    rows="16" fixed=${!isFull.value} fresh=${fresh} save=${save} close=${close} />`;
}

export function Events() {
  const { data, error } = useRead("/v1/history", { cwd: project.value, last: 1000 }, () => true);
  const lines = [...(data?.lines ?? [])].reverse();
  const row = (one) => html`<div class="event" key=${`${one.source}${one.run}${one.n}`}>
    <time title=${day(one.at)}>${clock(one.at)}</time>
    ${one.ticket ? html`<${TicketLink} id=${one.ticket} />` : html`<span></span>`}
    <span class="about">${one.words}</span><span class="hint" title=${one.why}>${one.rule}</span>
  </div>`;
  return html`<section>
    <h1>Events</h1>
    <${Trouble} error=${error} /><${Rows} className="history" items=${lines} height=${30} row=${row} />
  </section>`;
}
