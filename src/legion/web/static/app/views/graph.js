// The graph of tickets, laid out by dagre. Wheel and pinch zoom, dragging moves it; the longest chain is marked.
import { html, useEffect, useMemo, useRef, useState } from "../lib.js";
import { Graph as Layout, layout } from "../../vendor/dagre.mjs";
import { stateClass } from "../format.js";
import { useRead } from "../state.js";
import { Empty, Hint, Trouble } from "../parts.js";

const WIDTH = 190;
const HEIGHT = 46;

export function Graph({ shown, cwd }) {
  const root = cwd || null;
  const { data, error } = useRead(root && "/v1/graph", { cwd: root }, (one) => one.ticket !== null);
  const chain = new Set(data?.critical_path ?? []);
  const drawn = useMemo(() => draw(shown), [shown]);
  const [view, setView] = useState(null);
  const box = useRef(null);
  const drag = useRef(null);
  useEffect(
    () => setView({ x: 0, y: 0, scale: Math.min(1, (box.current?.clientWidth ?? 800) / (drawn.width + 40)) }),
    [drawn.width],
  );
  const zoom = (factor) => setView((old) => ({ ...old, scale: Math.min(3, Math.max(0.1, old.scale * factor)) }));
  const now = view ?? { x: 0, y: 0, scale: 1 };
  const reset = () => setView({ x: 0, y: 0, scale: 1 });
  const wheel = (event) => {
    event.preventDefault();
    zoom(event.deltaY < 0 ? 1.1 : 0.9);
  };
  const hold = (event) => {
    drag.current = { x: event.clientX - now.x, y: event.clientY - now.y };
  };
  const move = (event) => {
    if (drag.current) setView({ ...now, x: event.clientX - drag.current.x, y: event.clientY - drag.current.y });
  };
  const drop = () => {
    drag.current = null;
  };
  const edge = ({ from, to, path }) =>
    html`<path key=${`${from}-${to}`} d=${path} class="edge ${chain.has(from) && chain.has(to) ? "chain" : ""}" />`;
  const node = ({ one, x, y }) => html`<a key=${one.id} href=${`#/ticket/${one.id}`}>
    <rect x=${x - WIDTH / 2} y=${y - HEIGHT / 2} width=${WIDTH} height=${HEIGHT} rx="6"
      class="node ${stateClass(one.state)} ${chain.has(one.id) ? "chain" : ""}" />
    <text x=${x - WIDTH / 2 + 8} y=${y - 4} class="node-number">#${one.id} ${one.state}</text>
    <text x=${x - WIDTH / 2 + 8} y=${y + 14} class="node-title">${short(one.title)}</text>
  </a>`;
  return html`<div class="graph">
    <${Trouble} error=${error} />
    ${!root && html`<${Empty}>Choose one project above to see its longest chain.</${Empty}>`}
    <div class="toolbar">
      <button onClick=${() => zoom(1.25)} aria-label="Larger">+</button>
      <button onClick=${() => zoom(0.8)} aria-label="Smaller">−</button><button onClick=${reset}>100 %</button>
      <${Hint} of=${chain.size > 1 && `Longest chain: ${[...chain].map((id) => `#${id}`).join(" → ")}`} />
    </div>
    <svg ref=${box} role="group" aria-label="Tickets and what each comes after" onWheel=${wheel} onPointerDown=${hold}
      onPointerMove=${move} onPointerUp=${drop} onPointerLeave=${drop}
      height=${Math.max(220, Math.min(700, drawn.height * now.scale + 40))}>
      <g transform=${`translate(${now.x + 10} ${now.y + 10}) scale(${now.scale})`}>
        ${drawn.edges.map(edge)}${drawn.nodes.map(node)}
      </g>
    </svg>
  </div>`;
}

const short = (title) => (title.length > 25 ? `${title.slice(0, 24)}…` : title);

function draw(tickets) {
  const graph = new Layout();
  graph.setGraph({ rankdir: "LR", nodesep: 14, ranksep: 46 });
  graph.setDefaultEdgeLabel(() => ({}));
  const known = new Map(tickets.map((one) => [one.id, one]));
  for (const one of tickets) graph.setNode(String(one.id), { width: WIDTH, height: HEIGHT });
  for (const one of tickets) for (const id of one.after) if (known.has(id)) graph.setEdge(String(id), String(one.id));
  layout(graph);
  const nodes = tickets.map((one) => ({ one, ...graph.node(String(one.id)) }));
  const edges = graph.edges().map((edge) => {
    const [first, ...more] = graph.edge(edge).points;
    return {
      from: Number(edge.v),
      to: Number(edge.w),
      path: `M${first.x} ${first.y}${more.map((point) => `L${point.x} ${point.y}`).join("")}`,
    };
  });
  return { nodes, edges, width: graph.graph().width || WIDTH, height: graph.graph().height || HEIGHT };
}
