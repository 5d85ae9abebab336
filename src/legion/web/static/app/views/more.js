// The rarely needed views: projects, teams, events, search, devices.
import { html, useEffect, useState } from "../lib.js";
import { odd } from "../odd.js";
import { Writing, takeFocus, useDraft } from "../writing.js";
import { Act, Baseline, Empty, Facts, Line, Odd, Rows, State, Trouble } from "../parts.js";
import { board, choose, isFull, keepNotifying, project, session, useLive } from "../state.js";
import { call, get, post, withQuery } from "../api.js";
import { ago, bytes, clock, day, plain, plural } from "../format.js";
import { endPush, subscribePush } from "../push.js";

const never = () => false;
const cwdOf = () => project.value || board.value?.projects[0]?.root || "";

export function Projects() {
  const lines = board.value?.projects ?? [];
  const { data, error } = useLive(() => get("/v1/doctor", { cwd: cwdOf() }), [project.value], (one) => one.kind.startsWith("project."));
  return html`<section><h1>Projects</h1>
    ${lines.map((one) => html`<article class="project" key=${one.root} data-what=${one.name}><h2>${one.name} <${Baseline} of=${one.baseline} /></h2>
      <p class="hint">${one.root}, branch ${one.branch}</p>
      <div class="actions"><button onClick=${() => choose(one.root)} disabled=${project.value === one.root}>Show only this</button>
        ${one.paused ? html`<${Act} run=${() => post("/v1/project/resume", { cwd: one.root })}>Resume</${Act}>` : html`<${Act} run=${() => post("/v1/project/pause", { cwd: one.root })}>Pause</${Act}>`}
        <${Act} ask=${`Stop every ticket of ${one.name}?`} run=${() => post("/v1/project/stop", { cwd: one.root })}>Stop all</${Act}>
        <${Act} keys="D" ask="Remove every ended ticket from the board?" run=${() => post("/v1/project/drop", { cwd: one.root })}>Clear ended</${Act}></div>
      ${!one.trusted && html`<${Trusting} root=${one.root} />`}</article>`)}
    <h2>Checkup</h2><${Trouble} error=${error} />
    <ul class="findings">${(data?.findings ?? []).map((one) => html`<li key=${one.name}><span class="state ${one.ok ? "good" : "bad"}">${one.ok ? "ok" : "!"}</span> <b>${one.name}</b> ${one.detail} ${one.advice && html`<span class="hint">${one.advice}</span>`}</li>`)}</ul>
  </section>`;
}

function Trusting({ root }) {
  const { data, error } = useLive(() => get("/v1/project/trustable", { cwd: root }), [root], (one) => one.kind.startsWith("project."));
  const open = (data?.texts ?? []).filter((one) => !one.trusted);
  return html`<${Trouble} error=${error} />${open.map((one) => html`<div key=${one.hash}><h3>${one.file} <span class="hint">${one.place}</span></h3><pre class="output short" tabindex="0">${one.text}</pre></div>`)}
    ${open.length > 0 && isFull.value && html`<${Act} kind="primary" ask="Let these commands run?" run=${() => post("/v1/project/trust", { cwd: root, hashes: open.map((one) => one.hash) })}>Trust what is shown</${Act}>`}`;
}

export function Teams() {
  const teams = useLive(() => get("/v1/teams", { cwd: cwdOf() }), [project.value], never);
  const roles = useLive(() => get("/v1/roles", { cwd: cwdOf() }), [project.value], never);
  const [open, setOpen] = useState(null);
  return html`<section><h1>Teams and roles</h1><${Trouble} error=${teams.error} />
    <h2>Teams</h2><div class="tree">${(teams.data?.teams ?? []).map((one) => html`<button class="row" key=${one.name} aria-expanded=${open?.[1] === one.name} onClick=${() => setOpen(["teams", one.name])}><b>${one.name}</b>${one.default && html`<span class="flag">default</span>`}
      <span>${one.roles.join(" → ")}</span><span class="about">${one.fault || one.about}</span><span class="hint">${one.origin}</span></button>`)}</div>
    <h2>Roles</h2><div class="tree">${(roles.data?.roles ?? []).map((one) => html`<button class="row" key=${one.name} aria-expanded=${open?.[1] === one.name} onClick=${() => setOpen(["roles", one.name])}><b>${one.name}</b><span class="flag">${one.part}</span>
      <span class="about">${one.fault || one.about}</span><span>${one.model}</span><span class="hint">${one.origin}</span></button>`)}</div>
    ${isFull.value && html`<div>${[["roles", "role"], ["teams", "team"]].map(([room, word]) => html`<${Line} key=${room} label=${`Name of a new ${word}`} verb=${`Write the ${word}`} send=${async (name) => setOpen([room, name, true])} />`)}</div>`}
    ${open && html`<${Definition} key=${open.join()} room=${open[0]} name=${open[1]} fresh=${open[2]} close=${() => setOpen(null)} />`}</section>`;
}

function Definition({ room, name, fresh = false, close }) {
  const { data, error } = useLive(() => get(`/v1/${room}/text`, { cwd: cwdOf(), name, new: fresh }), [room, name], never);
  const [text, setText] = useDraft(`${room} ${name}`, null);
  if (!data) return html`<${Trouble} error=${error} />`;
  const now = text ?? data.text;
  const save = async () => {
    const done = await post(`/v1/${room}`, { cwd: cwdOf(), name, text: now, new: fresh });
    setText(null);
    close();
    return done;
  };
  return html`<${Writing} className="editor" label=${name} close=${close}><h2>${name} <span class="hint">${data.file}</span></h2>
    <${Odd} in=${odd(now)} where="This text" />
    <textarea rows="16" spellcheck="false" aria-label="Its file" value=${now} readonly=${!isFull.value}
      onInput=${(event) => setText(event.target.value)}></textarea>
    <div class="actions">${isFull.value && html`<${Act} kind="primary" disabled=${text === null && !fresh} run=${save}>Save</${Act}>`}
      <button onClick=${close}>Close</button>
      ${text !== null && html`<${Act} ask="Discard what you changed?" run=${async () => setText(null)}>Discard changes</${Act}>`}</div></${Writing}>`;
}

export function Events() {
  const { data, error } = useLive(() => get("/v1/history", { cwd: project.value, last: 1000 }), [project.value]);
  const lines = [...(data?.lines ?? [])].reverse();
  return html`<section><h1>Events</h1><${Trouble} error=${error} /><${Rows} className="history" items=${lines} height=${30} row=${(one) => html`<div class="event" key=${`${one.source}${one.run}${one.n}`}>
    <time title=${day(one.at)}>${clock(one.at)}</time>${one.ticket ? html`<a href=${`#/ticket/${one.ticket}`}>#${one.ticket}</a>` : html`<span></span>`}<span class="about">${one.words}</span><span class="hint" title=${one.why}>${one.rule}</span></div>`} /></section>`;
}

export function Search() {
  const [words, setWords] = useState("");
  const { data, error } = useLive(() => get("/v1/status", { cwd: project.value, all: true }), [project.value], (one) => one.kind === "ticket.created");
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const found = (data?.tickets ?? []).filter((one) => wanted.every((word) => `#${one.id} ${one.title} ${one.state} ${one.epic} ${one.project} ${one.reason}`.toLowerCase().includes(word)));
  return html`<section ref=${takeFocus}><h1>Search</h1><input type="search" aria-label="Search tickets and conversations" placeholder="Tickets and conversations" value=${words} onInput=${(event) => setWords(event.target.value)} />
    <${Trouble} error=${error} />${wanted.length > 0 && html`<${Conversations} query=${words.trim()} />`}
    ${data && html`<h2>${plural(found.length, "ticket")}</h2>`}
    <${Rows} className="tree" items=${found.reverse()} height=${38} row=${(one) => html`<a class="row" key=${one.id} href=${`#/ticket/${one.id}`} data-ticket=${one.id}><span class="number">#${one.id}</span><${State} of=${one.state} /><span class="title">${one.title}</span><span class="about">${one.epic} ${ago(one.moved_at)} ago</span></a>`} /></section>`;
}

const PAUSE = 350; // Milliseconds after the last letter.

function Conversations({ query }) {
  const [asked, setAsked] = useState("");
  const [open, setOpen] = useState("");
  useEffect(() => { const timer = setTimeout(() => setAsked(query), PAUSE); return () => clearTimeout(timer); }, [query]);
  const { data, error } = useLive(() => (asked ? get("/v1/conversations/search", { query: asked, most: 20, timeout: 2 }) : Promise.resolve(null)), [asked], never);
  const hits = data?.hits ?? [];
  return html`<h2>${plural(hits.length, "conversation")} ${data?.index.reading && html`<span class="hint">reading: ${bytes(data.index.bytes_done)} of ${bytes(data.index.bytes)}</span>`}</h2><${Trouble} error=${error} />
    ${hits.map((hit, n) => html`<article class="receipt" key=${n}><p class="path">${hit.conversation.program} <b>${hit.conversation.title}</b> <span class="hint">${hit.conversation.project}, ${day(hit.at)}</span>
      ${hit.conversation.ticket && html` <a href=${`#/ticket/${hit.conversation.ticket}`}>#${hit.conversation.ticket}</a>`} <button onClick=${() => setOpen(open === hit.conversation.id ? "" : hit.conversation.id)}>Read</button></p>
      <p class="about">${marked(hit.excerpt, hit.found)}</p>${open === hit.conversation.id && html`<${Reading} id=${open} />`}</article>`)}`;
}

// The excerpt with the words that were searched for.
function marked(text, found) {
  const parts = [];
  let at = 0;
  for (const [start, end] of found) { parts.push(text.slice(at, start), html`<mark>${text.slice(start, end)}</mark>`); at = end; }
  return [...parts, text.slice(at)];
}

function Reading({ id }) {
  const { data, error } = useLive(() => get("/v1/conversations/export", { id, format: "md" }), [id], never);
  return html`<${Trouble} error=${error} />${data && html`<pre class="output" tabindex="0" aria-label="The conversation">${plain(data.text)}</pre>`}`;
}

export function Devices() {
  const { data, error } = useLive(() => get("/v1/web/devices"), [], (one) => one.kind.startsWith("device."));
  const worktrees = useLive(() => (cwdOf() ? get("/v1/worktrees", { cwd: cwdOf() }) : Promise.resolve(null)), [project.value], never);
  return html`<section><h1>This page</h1>
    <${Facts} of=${{ device: `${session.value?.device} ${session.value?.name}`, rights: session.value?.rights, version: session.value?.version }} />
    ${session.value?.rights === "limited" && html`<p class="step needs">This address is not encrypted: others on the network can read what you see. What decides which programs run on Legion's machine is closed here.</p>`}
    <${Theme} /><${Notify} />
    <h2>Devices</h2><${Trouble} error=${error} /><ul>${(data?.devices ?? []).map((one) => html`<li key=${one.id}><b>${one.name || "unnamed"}</b> ${one.id === session.value?.device && html`<span class="flag">this browser</span>`} ${one.read_only && html`<span class="flag">read-only</span>`} at ${one.host}, seen ${one.seen_at ? `${ago(one.seen_at)} ago` : "never"}
      ${isFull.value && html` <${Act} ask="Shut it out?" run=${() => post("/v1/web/devices/revoke", { id: one.id })}>Revoke</${Act}>`}</li>`)}</ul>
    ${worktrees.data && html`<h2>Worktrees</h2><p class="hint">${worktrees.data.root}, ${bytes(worktrees.data.trash_bytes)} in the trash</p>`}
    <ul>${(worktrees.data?.worktrees ?? []).map((one) => html`<li key=${one.path}>${one.ticket && html`<a href=${`#/ticket/${one.ticket}`}>#${one.ticket}</a> `}${one.name} <span class="hint">${one.state}, ${bytes(one.bytes)}</span></li>`)}</ul></section>`;
}

function Theme() {
  const [now, setNow] = useState(document.documentElement.dataset.theme ?? "");
  const set = (theme) => { setNow(theme); window.dispatchEvent(new CustomEvent("legion-theme", { detail: theme })); };
  return html`<p>Colours: ${["", "light", "dark"].map((theme) => html`<button key=${theme} aria-pressed=${now === theme} onClick=${() => set(theme)}>${theme || "as the system"}</button> `)}</p>`;
}

function Notify() {
  const [now, setNow] = useState("Notification" in window ? Notification.permission : "denied");
  if (!("Notification" in window) || !window.isSecureContext) return html`<p class="hint">Browsers show notifications only for addresses on this machine or behind TLS. A webhook or a topic of ntfy works everywhere: <code>[notify]</code> in the settings.</p>`;
  const allow = async () => { setNow(await Notification.requestPermission()); keepNotifying(); return subscribePush(); };
  return html`<p>Notifications: ${now === "granted" ? html`on: questions, failures, and when all is done. <${Act} run=${endPush}>Only while the page is open</${Act}>` : html`<${Act} run=${allow}>Allow them</${Act}>`}</p>`;
}
