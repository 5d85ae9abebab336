export function h(type: unknown, props: unknown, ...children: unknown[]): VNode;
export function createContext<T>(start: T): { Provider: unknown; value?: T };
export function render(node: VNode, parent: Element): void;
export const options: { vnode?: (node: VNode) => void };
export interface VNode {
  type: unknown;
  props: any;
}
