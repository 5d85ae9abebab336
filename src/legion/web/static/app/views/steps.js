// What to do next, in one place on top of the board: questions, changes to collect, trust.
import { html } from "../lib.js";
import { Act, Step } from "../parts.js";
import { board, waiting } from "../state.js";
import { post } from "../api.js";
import { plural } from "../format.js";

export function NextSteps({ status }) {
  const lines = status.project ? [status.project] : status.projects;
  const { sandbox, sandbox_missing: open } = status.daemon;
  return html`<div class="next">
    <${Waits} />${lines.map((one) => html`<${ProjectSteps} line=${one} key=${one.root} />`)}
    <${Step} kind="bad" of=${open && `Agents run without a sandbox: ${sandbox}`} />
  </div>`;
}

// What only the person can settle, in one list.
function Waits() {
  const here = board.value?.project?.name;
  const all = waiting.value.length;
  const others = here ? waiting.value.filter((one) => one.project && one.project !== here).length : 0;
  const where = others ? ` (${others === all ? "all" : others} in other projects)` : "";
  const words = `${plural(all, "thing")} ${all === 1 ? "waits" : "wait"} for you${where}`;
  return all > 0 && html`<p class="step needs"><a href="#/inbox">${words}</a></p>`;
}

const Todo = ({ when, kind, text, children }) =>
  when && html`<div class="step ${kind}"><span>${text}</span>${children}</div>`;

function ProjectSteps({ line }) {
  const { root: cwd, name, ahead } = line;
  const collect = `${plural(ahead, "landed commit")} of ${name} ${ahead === 1 ? "is" : "are"} not in your branch yet.`;
  const go = (verb) => () => post(`/v1/project/${verb}`, { cwd });
  return html`
    <${Todo} when=${ahead > 0} kind="good" text=${collect}>
      <${Act} keys="C" run=${go("collect")}>Collect</${Act}>
    </${Todo}>
    <${Todo} when=${line.paused} kind="needs" text=${`${name} is paused: nothing new starts.`}>
      <${Act} run=${go("resume")}>Resume</${Act}>
    </${Todo}>
    <${Todo} when=${!line.trusted} kind="bad" text=${`The settings of ${name} are not trusted, so nothing runs.`}>
      <a href="#/projects">Read and trust them</a>
    </${Todo}>
    <${Todo} when=${line.baseline === "red"} kind="bad" text=${`The checks fail on ${line.branch} of ${name} itself.`}>
      <a href="#/queue">See the queue</a>
    </${Todo}>
    ${line.notes.map((note) => html`<${Step} key=${note} of=${note} />`)}
  `;
}
