declare const htm: {
  bind(h: unknown): (strings: TemplateStringsArray, ...values: unknown[]) => import("./preact.mjs").VNode;
};
export default htm;
