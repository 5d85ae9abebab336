// What work cost: by day, ticket, agent, model or epic; waste; the providers' limits.
import { html, useState } from "../lib.js";
import { Empty, Tabs, Trouble } from "../parts.js";
import { project, useLive } from "../state.js";
import { get } from "../api.js";
import { amount, dollars, duration, until } from "../format.js";

const BY = [["day", "Day"], ["ticket", "Ticket"], ["agent", "Agent"], ["model", "Model"], ["epic", "Epic"]];
const ends = (one) => one.kind === "run.ended" || one.kind === "pace.changed" || one.kind === "landing.landed";

export function Usage({ by = "day" }) {
  const { data, error } = useLive(() => get("/v1/usage", { cwd: project.value, by }), [by, project.value], ends);
  const limits = useLive(() => get("/v1/providers"), [], ends);
  return html`<section>
    <${Tabs} names=${BY} now=${by} base="#/usage" /><${Trouble} error=${error} />
    ${data && html`<p class="big">${dollars(data.total.usage.usd)} <span class="hint">${amount(data.total.usage.input + data.total.usage.cache_read + data.total.usage.cache_write)} tokens in, ${amount(data.total.usage.output)} out, ${duration(data.total.seconds)} of agents at work, ${data.total.landed} landed${data.total.usd_per_landed === null ? "" : ` for ${dollars(data.total.usd_per_landed)} each`}, ${dollars(data.total.wasted.usd)} in attempts that did not land</span></p>`}
    ${data && (data.shares.length ? html`<${Bars} shares=${data.shares} by=${by} />` : html`<${Empty}>Nothing was spent yet.</${Empty}>`)}
    <h2>Limits</h2>
    ${limits.data?.providers.length === 0 && html`<${Empty}>No provider yet: <a href="#/models">add one</a>.</${Empty}>`}
    ${(limits.data?.providers ?? []).map((one) => html`<p key=${one.name}><b>${one.name}</b> ${one.limit ? html`<meter min="0" max="1" value=${one.limit.utilization ?? 0}></meter> ${one.limit.window} ${one.limit.utilization === null ? "" : `${Math.round(one.limit.utilization * 100)} %`}
      ${one.limit.resets_at ? `, resets in ${until(one.limit.resets_at)}` : ""}` : html`<span class="hint">has reported no limit</span>`}</p>`)}
  </section>`;
}

function Bars({ shares, by }) {
  const most = Math.max(...shares.map((one) => one.usage.usd), 0.01);
  return html`<table class="bars"><thead><tr><th>${BY.find(([key]) => key === by)[1]}</th><th>Cost</th><th class="wide">Spent, and the part that did not land</th><th>Tokens out</th><th>Landed</th></tr></thead><tbody>
    ${shares.slice(0, 100).map((one) => html`<tr key=${one.key}><td>${by === "ticket" && one.key ? html`<a href=${`#/ticket/${one.key}`}>#${one.key}</a> ${one.title}` : one.key || "none"}</td>
      <td>${dollars(one.usage.usd)}</td>
      <td><svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label=${`${dollars(one.usage.usd)}, ${dollars(one.wasted.usd)} did not land`}>
        <rect width=${(one.usage.usd / most) * 100} height="8" class="spent" /><rect width=${(one.wasted.usd / most) * 100} height="8" class="wasted" /></svg></td>
      <td>${amount(one.usage.output)}</td><td>${one.landed}</td></tr>`)}</tbody></table>`;
}
