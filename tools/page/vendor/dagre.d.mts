export class Graph {
  setGraph(options: object): void;
  graph(): { width: number; height: number };
  setDefaultEdgeLabel(make: () => object): void;
  setNode(name: string, size: { width: number; height: number }): void;
  setEdge(from: string, to: string): void;
  node(name: string): { x: number; y: number };
  edges(): { v: string; w: string }[];
  edge(of: object): { points: { x: number; y: number }[] };
}
export function layout(graph: Graph): void;
