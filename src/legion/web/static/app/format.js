// Times, amounts and states as people read them.
export const STATES = {
  draft: ["draft", "quiet"],
  queued: ["queued", "quiet"],
  working: ["working", "busy"],
  checking: ["checking", "busy"],
  reviewing: ["in review", "busy"],
  landing: ["landing", "busy"],
  parked: ["parked", "needs"],
  done: ["done", "good"],
  failed: ["failed", "bad"],
  stopped: ["stopped", "quiet"],
};
export const ENDED = new Set(["done", "failed", "stopped"]);

export function ago(at, now = Date.now() / 1000) {
  const seconds = Math.max(0, now - at);
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86400)} d`;
}

export const until = (at) => (at * 1000 <= Date.now() ? "now" : ago(Date.now() / 1000, at));
export const duration = (seconds) => ago(0, seconds);
export const clock = (at) => new Date(at * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
export const day = (at) => new Date(at * 1000).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
export const dollars = (usd) =>
  usd === null || usd === undefined ? "" : `$${usd.toFixed(usd < 10 ? 2 : usd < 1000 ? 1 : 0)}`;

export const spentOf = (usage, unknown = "not known") => (usage.unpriced && !usage.usd ? unknown : dollars(usage.usd));

export function amount(number) {
  if (number < 1000) return String(number);
  if (number < 1_000_000) return `${(number / 1000).toFixed(number < 10_000 ? 1 : 0)} k`;
  return `${(number / 1_000_000).toFixed(1)} M`;
}

export function bytes(number) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let unit = 0;
  while (number >= 1000 && unit < units.length - 1) {
    number /= 1000;
    unit += 1;
  }
  return `${unit ? number.toFixed(1) : number} ${units[unit]}`;
}

// One of a list of words that are safe as a CSS class.
export const stateClass = (state) => (STATES[state] ?? ["", "quiet"])[1];
export const plural = (count, one, many = `${one}s`) => `${count} ${count === 1 ? one : many}`;
// Output of agents without what drives a terminal.
export const plain = (text) =>
  text.replace(/\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[0-?]*[ -/]*[@-~]|\x1b[@-_]|[\x00-\x08\x0b-\x1f\x7f]/g, "");
export const lastLines = (text, count) =>
  plain(text ?? "")
    .trimEnd()
    .split("\n")
    .slice(-count)
    .join("\n");
