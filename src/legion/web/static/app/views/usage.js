// What work cost: by day, ticket, agent, model or epic; waste; the providers' limits.
import { html } from "../lib.js";
import { Empty, Hint, Table, Tabs, TicketLink, Trouble } from "../parts.js";
import { project, useRead } from "../state.js";
import { amount, spentOf, dollars, duration, until } from "../format.js";

const BY = [
  ["day", "Day"],
  ["ticket", "Ticket"],
  ["agent", "Agent"],
  ["model", "Model"],
  ["epic", "Epic"],
];
const ENDS = /^(run\.ended|throttle\.changed|landing\.landed)$/;

export function Usage({ by = "day" }) {
  const { data, error } = useRead("/v1/usage", { cwd: project.value, by }, ENDS);
  const limits = useRead("/v1/providers", {}, ENDS).data?.providers ?? [];
  return html`<section>
    <${Tabs} names=${BY} now=${by} base="#/usage" /><${Trouble} error=${error} />
    ${data && html`<p class="big">${spentOf(data.total.usage)} <${Hint} of=${summary(data.total)} /></p>`}
    ${data?.shares.length > 0 && html`<${Bars} shares=${data.shares} by=${by} />`}
    ${data?.shares.length === 0 && html`<${Empty}>Nothing was spent yet.</${Empty}>`}
    <h2>Limits</h2>
    ${!limits.length && html`<${Empty}>No provider yet: <a href="#/models">add one</a>.</${Empty}>`}
    ${limits.map((one) => html`<p key=${one.name}><b>${one.name}</b> <${Limit} of=${one.limit} /></p>`)}
  </section>`;
}

const summary = ({ usage, seconds, landed, usd_per_landed: each, wasted }) =>
  [
    `${amount(usage.input + usage.cache_read + usage.cache_write)} tokens in`,
    `${amount(usage.output)} out`,
    `${duration(seconds)} of agents at work`,
    `${landed} landed${each === null ? "" : ` for ${dollars(each)} each`}`,
    `${spentOf(wasted)} in attempts that did not land`,
  ].join(", ");

function Limit({ of }) {
  if (!of) return html`<${Hint} of="has reported no limit" />`;
  const used = of.utilization === null ? "" : `${Math.round(of.utilization * 100)} %`;
  const ends = of.resets_at ? `, resets in ${until(of.resets_at)}` : "";
  return html`<meter min="0" max="1" value=${of.utilization ?? 0}></meter> ${of.window} ${used} ${ends}`;
}

function Bars({ shares, by }) {
  const most = Math.max(...shares.map((one) => one.usage.usd), 0.01);
  const part = (usd) => (usd / most) * 100;
  const name = (one) =>
    by === "ticket" && one.key ? html`<${TicketLink} id=${one.key} /> ${one.title}` : one.key || "none";
  const bar = ({ usage, wasted }) =>
    html`<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" role="img"
      aria-label=${`${spentOf(usage)}, ${spentOf(wasted)} did not land`}>
      <rect width=${part(usage.usd)} height="8" class="spent" />
      <rect width=${part(wasted.usd)} height="8" class="wasted" />
    </svg>`;
  const columns = [
    [BY.find(([key]) => key === by)?.[1], name],
    ["Cost", (one) => spentOf(one.usage)],
    ["Spent, and the part that did not land", bar],
    ["Tokens out", (one) => amount(one.usage.output)],
    ["Landed", (one) => one.landed],
  ];
  return html`<${Table} className="bars" of=${shares.slice(0, 100)} columns=${columns}
    row=${(one) => ({ key: one.key })} />`;
}
