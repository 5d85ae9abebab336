// An epic: how far it is, what it cost, its tickets, and what can be done with all of them.
import { html } from "../lib.js";
import { Acts, Badge, Facts, Hint, Items, Line, TicketRow, Trouble } from "../parts.js";
import { cwdOf, mayAct, useRead } from "../state.js";
import { post } from "../api.js";
import { spentOf, dollars, plural } from "../format.js";
import { openPlan, Points } from "./plans.js";

const STAGES = { working: "busy", asking: "needs", done: "good", failed: "bad" };

export function Epic({ name }) {
  const cwd = cwdOf();
  const { data, error } = useRead("/v1/epics/page", { cwd, name }, /^(plan|ticket|question)\./);
  if (!data) return html`<${Trouble} error=${error} />`;
  const body = { cwd, epic: name };
  const acts = [
    { words: "Plan again what is left", run: async () => openPlan(await post("/v1/epics/replan", body)) },
    { words: "Stop all", ask: "Stop every ticket of this epic?", at: "/v1/epics/stop", body },
  ];
  const limit = async (usd) => {
    await post("/v1/epics/budget", { ...body, usd: Number(usd) });
    return { message: "The budget is set." };
  };
  const facts = {
    spent: data.usage ? spentOf(data.usage) : "",
    budget: data.budget === null ? "no limit" : dollars(data.budget),
    landed: data.landed.length,
    "longest chain": data.critical_path.map((n) => `#${n}`).join(" → "),
    plans: data.plans.map((one) => one.id).join(", "),
  };
  const stage = (one) => html`
    <a href=${`#/plan/${one.plan}`}>${one.plan}</a> ${one.stage} ${""}
    <${Badge} of=${one.state} kind=${STAGES[one.state]} /> <${Hint} of=${one.usd === null ? "" : dollars(one.usd)} />
  `;
  const about = (one) => html`<span class="about">${one.reason || one.doing}</span>`;
  const row = (one) => html`<${TicketRow} key=${one.id} one=${one} about=${about(one)} />`;
  return html`<article>
    <p class="path"><a href="#/board">Board</a> / epic</p>
    <h1>${data.name}</h1>
    <p>
      <progress max=${data.total || 1} value=${data.done} aria-label="Progress"></progress> ${""}
      ${data.done} of ${plural(data.total, "ticket")} done
    </p>
    <${Items} name="Specification" of=${data.stages} row=${stage} /><${Facts} of=${facts} />
    <${Points} of=${data.points} />
    ${
      mayAct.value &&
      html`<${Acts} of=${acts}><${Line} label="Budget of the epic in dollars (0: none)" send=${limit} /></${Acts}>`
    }
    <div class="tree">${data.tickets.map(row)}</div>
  </article>`;
}
