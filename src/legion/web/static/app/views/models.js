// Providers of models, their keys and routes. A key is typed only into a page on Legion's machine or behind TLS: it is
// sent once, and never kept or shown.
import { html, useState } from "../lib.js";
import { Acts, Badge, Empty, Flag, Opener, Table, Trouble } from "../parts.js";
import { Form } from "../fields.js";
import { isFull, mayAct, useRead } from "../state.js";
import { post } from "../api.js";

const USUAL = ["anthropic", "openai", "openrouter", "minimax", "ollama", "vllm", "lmstudio"];
const APIS = ["anthropic", "openai_chat", "openai_responses"];
const PROVIDER = [
  {
    name: "name",
    label: "Name",
    choices: USUAL,
    hint: `${USUAL.slice(0, 4).join(", ")} or a name of your own with an address.`,
  },
  {
    name: "key",
    label: "Key",
    kind: "secret",
    hint: "It is sent to Legion once and kept in a file that only you can read. Empty: the provider needs none.",
  },
  [
    { name: "url", label: "Address", placeholder: "as usual" },
    { name: "kind", label: "API", kind: "choice", choices: APIS },
    { name: "model", label: "Model", placeholder: "as the agent asks" },
  ],
];
const NAMED = ["name"];
const ROUTE = [
  { name: "model", label: "Model", placeholder: "claude-opus*" },
  { name: "to", label: "Answered by", placeholder: "openrouter/some-model, anthropic" },
];

export function Models() {
  const [adding, setAdding] = useState(false);
  const providers = useRead("/v1/providers");
  const routes = useRead("/v1/providers/routes");
  const toggle = () => setAdding(!adding);
  return html`<section>
    <h1>Models</h1>
    ${
      isFull.value &&
      html`<div class="toolbar">
        <${Opener} open=${adding} toggle=${toggle} kind="primary" keys="a">Add a provider</${Opener}>
      </div>`
    }
    ${adding && html`<${Adding} close=${() => setAdding(false)} />`}<${Trouble} error=${providers.error} />
    ${providers.data && html`<${Providers} of=${providers.data.providers} />`}
    <h2>Routes</h2>
    <${Routes} of=${routes.data?.routes ?? []} />
    ${
      isFull.value &&
      html`<${Form} name="route" fields=${[ROUTE]} needs=${["model", "to"]} kind="" verb="Set the route"
        send=${setRoute}>
        <p class="hint"><a href="#/actions/providers">With an agent, role, team or price</a></p>
      </${Form}>`
    }
    ${
      mayAct.value &&
      !isFull.value &&
      html`<p class="hint">
        This address is not encrypted: providers and routes are changed on Legion's machine, or behind <code>
          legion web --tls
        </code>
        .
      </p>`
    }
  </section>`;
}

function Providers({ of }) {
  if (!of.length) return html`<${Empty}>No provider yet.</${Empty}>`;
  const acts = ({ name }) => [
    { words: "Test", keys: "t", at: "/v1/providers/test", body: { name } },
    isFull.value && {
      words: "Remove",
      keys: "d",
      ask: `Remove ${name} and its stored key?`,
      at: "/v1/providers/remove",
      body: { name, yes: true },
    },
  ];
  const columns = [
    ["Provider", (one) => html`${one.name} <${Flag} of=${one.default && "default"} />`],
    ["Address", (one) => one.url],
    ["Key", (one) => html`<${Badge} of=${one.found === false && "missing"} kind="bad" /> ${one.key}`],
    ["Model", (one) => one.model],
    ["", (one) => html`<${Acts} as="span" of=${acts(one)} />`],
  ];
  return html`<${Table} of=${of} columns=${columns}
    row=${({ name }) => ({ key: name, tabindex: "-1", "data-what": name })} />`;
}

function Routes({ of }) {
  if (!of.length) return html`<${Empty}>No routes: each model is requested from its own provider.</${Empty}>`;
  const acts = ({ model, provider, agent, role, team }) => [
    isFull.value && {
      words: "Remove",
      keys: "d",
      ask: "Remove this route?",
      at: "/v1/providers/routes/remove",
      body: { model, provider, agent, role, team },
    },
  ];
  const columns = [
    ["Model", (one) => one.model],
    ["Answered by", (one) => one.to.join(", then ")],
    ["Only for", (one) => [one.provider, one.agent, one.role, one.team].filter(Boolean).join(", ")],
    ["", (one) => html`<${Acts} as="span" of=${acts(one)} />`],
  ];
  return html`<${Table} of=${of} columns=${columns} row=${({ model }) => ({ tabindex: "-1", "data-what": model })} />`;
}

function Adding({ close }) {
  const add = async ({ name, key = "", url = "", kind = "", model = "" }) => {
    const wanted = { name: name.trim(), key: key.trim(), url: url.trim(), kind, model: model.trim() || null };
    const answer = await post("/v1/providers", { ...wanted, no_key: !wanted.key }, { waits: true });
    close();
    return answer;
  };
  return html`<${Form} name="provider" fields=${PROVIDER} needs=${NAMED} verb="Add it" send=${add} close=${close} />`;
}

const setRoute = ({ model, to }) =>
  post("/v1/providers/routes", {
    model: model.trim(),
    to: to
      .split(",")
      .map((one) => one.trim())
      .filter(Boolean),
  });
