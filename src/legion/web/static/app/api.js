// Requests to the daemon. The header tells its guard that this page sends them, and not a page of another site.
const HEADERS = { "legion-page": "1" };
const SECONDS = 20;
const WAITING_SECONDS = 45;
export const VERSION = document.querySelector("meta[name=legion-version]").content;

export class Problem extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

let onVersion = () => {};
let onShutOut = () => {};

export function watchAnswers({ version, shutOut }) {
  onVersion = version;
  onShutOut = shutOut;
}

export async function call(method, path, body, { waits = false, leave } = {}) {
  const abort = new AbortController();
  leave?.addEventListener("abort", () => abort.abort());
  const timer = setTimeout(() => abort.abort(), (waits ? WAITING_SECONDS : SECONDS) * 1000);
  try {
    return await answerOf(await (early(method, path) ?? fetch(path, {
      method,
      headers: body === undefined ? HEADERS : { ...HEADERS, "content-type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "same-origin",
      signal: abort.signal,
    })));
  } catch (error) {
    if (error instanceof Problem) throw error;
    throw new Problem(
      error.name === "AbortError" ? "Legion does not answer; try again." : "Legion is not reachable; is it running?", 0,
    );
  } finally {
    clearTimeout(timer);
  }
}

// The answer that early.js has requested already, once.
function early(method, path) {
  const answer = method === "GET" ? window.early?.get(path) : undefined;
  window.early?.delete(path);
  return answer;
}

async function answerOf(response) {
  const version = response.headers.get("legion-version");
  if (version && version !== VERSION) onVersion(version);
  const text = await response.text();
  if (response.ok) return text ? JSON.parse(text) : null;
  let message = `Legion answered with ${response.status}.`;
  try {
    message = JSON.parse(text).message || message;
  } catch { /* not ours: keep the number */ }
  if (response.status === 401) onShutOut(message);
  throw new Problem(message, response.status);
}

export const get = (path, query) => call("GET", withQuery(path, query));
export const post = (path, body = {}, options) => call("POST", path, body, options);

export function withQuery(path, query = {}) {
  const parts = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return parts.length ? `${path}?${new URLSearchParams(parts)}` : path;
}

// Batches of events after a number, for as long as the connection lasts. EventSource cannot send our header.
export async function* events(after, signal) {
  const response = await fetch(withQuery("/v1/events", { after }), { headers: HEADERS, credentials: "same-origin", signal });
  if (!response.ok) await answerOf(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    yield blocks.flatMap(parse);
  }
}

function parse(block) {
  const data = block.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5)).join("\n");
  return data ? [JSON.parse(data)] : [];
}
