// This browser and the others that were let in: rights, colours, notifications, and where Legion keeps its work.
import { html, useState } from "../lib.js";
import { Act, Facts, Flag, Hint, Step, TicketLink, Trouble } from "../parts.js";
import { cwdOf, isFull, keepNotifying, session, useRead } from "../state.js";
import { post } from "../api.js";
import { ago, bytes } from "../format.js";
import { endPush, subscribePush } from "../push.js";

const LIMITED =
  "This address is not encrypted: others on the network can read what you see. What decides which programs run on " +
  "Legion's machine is closed here.";

export function Devices() {
  const { data, error } = useRead("/v1/web/devices", {}, /^device\./);
  const { device, name, rights, version } = session.value ?? {};
  return html`<section>
    <h1>This page</h1>
    <${Facts} of=${{ device: `${device} ${name}`, rights, version }} /><${Step} of=${rights === "limited" && LIMITED} />
    <${Theme} /><${Notify} />
    <h2>Devices</h2>
    <${Trouble} error=${error} />
    <ul>
      ${(data?.devices ?? []).map((one) => html`<${Device} key=${one.id} one=${one} mine=${one.id === device} />`)}
    </ul>
    <${Worktrees} cwd=${cwdOf()} />
  </section>`;
}

function Device({ one, mine }) {
  const revoke = () => post("/v1/web/devices/revoke", { id: one.id });
  return html`<li>
    <b>${one.name || "unnamed"}</b> <${Flag} of=${mine && "this browser"} /> <${Flag}
      of=${one.read_only && "read-only"} /> at ${""}
    ${one.host}, seen ${one.seen_at ? `${ago(one.seen_at)} ago` : "never"} ${""}
    ${isFull.value && html`<${Act} ask="Shut it out?" run=${revoke}>Revoke</${Act}>`}
  </li>`;
}

function Worktrees({ cwd }) {
  const { data } = useRead(cwd && "/v1/worktrees", { cwd });
  const row = (one) => html`<li key=${one.path}>
    <${TicketLink} id=${one.ticket} /> ${one.name} <${Hint} of=${`${one.state}, ${bytes(one.bytes)}`} />
  </li>`;
  return (
    data &&
    html`
      <h2>Worktrees</h2>
      <p class="hint">${data.root}, ${bytes(data.trash_bytes)} in the trash</p>
      <ul>${data.worktrees.map(row)}</ul>
    `
  );
}

function Theme() {
  const [now, setNow] = useState(document.documentElement.dataset.theme ?? "");
  const set = (theme) => {
    setNow(theme);
    window.dispatchEvent(new CustomEvent("legion-theme", { detail: theme }));
  };
  const choice = (theme) =>
    html`
      <button key=${theme} aria-pressed=${now === theme} onClick=${() => set(theme)}>
        ${theme || "as the system"}
      </button>
      ${" "}
    `;
  return html`<p>Colours: ${["", "light", "dark"].map(choice)}</p>`;
}

function Notify() {
  const [now, setNow] = useState("Notification" in window ? Notification.permission : "denied");
  if (!("Notification" in window) || !window.isSecureContext) {
    return html`<p class="hint">
      Browsers show notifications only for addresses on this machine or behind TLS. A webhook or a topic of ntfy works
      everywhere: ${""}
      <code>[notify]</code> in the settings.
    </p>`;
  }
  const allow = async () => {
    setNow(await Notification.requestPermission());
    keepNotifying();
    return subscribePush();
  };
  if (now !== "granted") return html`<p>Notifications: <${Act} run=${allow}>Allow them</${Act}></p>`;
  return html`<p>
    Notifications: on: questions, failures, and when all is done. <${Act} run=${endPush}>
      Only while the page is open
    </${Act}>
  </p>`;
}
