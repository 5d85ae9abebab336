// Requests to the daemon, with the secret that it gave this browser. The secret is kept per origin, so no server on
// another port gets it, and no cookie carries it.
const SECRET = "legion.device";
let secret = "";
try {
  secret = localStorage.getItem(SECRET) ?? "";
} catch {
  /* a browser that keeps nothing: let in until the page is closed */
}
/** @returns {Record<string, string>} */
const headers = () => (secret ? { "legion-device": secret } : { "legion-page": "1" });
const SECONDS = 20;
const WAITING_SECONDS = 45;
window.early ??= new Map();
const VERSION = document.querySelector("meta[name=legion-version]")?.getAttribute("content") ?? "";

export class Problem extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

let onVersion = (/** @type {string} */ _) => {};
let onShutOut = (/** @type {string} */ _) => {};

export function watchAnswers({ version, shutOut }) {
  onVersion = version;
  onShutOut = shutOut;
}

export async function call(method, path, body, { waits = false } = {}) {
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(), (waits ? WAITING_SECONDS : SECONDS) * 1000);
  try {
    return await answerOf(
      await (early(method, path) ??
        fetch(path, {
          method,
          headers: body === undefined ? headers() : { ...headers(), "content-type": "application/json" },
          body: body === undefined ? undefined : JSON.stringify(body),
          credentials: "omit",
          signal: abort.signal,
        })),
    );
  } catch (error) {
    if (error instanceof Problem) throw error;
    throw new Problem(
      error.name === "AbortError" ? "Legion does not answer; try again." : "Legion is not reachable; is it running?",
      0,
    );
  } finally {
    clearTimeout(timer);
  }
}

// The answer that early.js has requested already, once.
function early(method, path) {
  const answer = method === "GET" ? window.early.get(path) : undefined;
  window.early.delete(path);
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
  } catch {
    /* not ours: keep the number */
  }
  if (response.status === 401) onShutOut(message);
  throw new Problem(message, response.status);
}

// Exchanges the code of a link, once, for the secret of this browser.
export async function logIn(code, name) {
  forget();
  const session = await call("POST", "/web/login", { code, name });
  secret = session.secret;
  try {
    localStorage.setItem(SECRET, secret);
  } catch {
    /* until the page is closed */
  }
}

function forget() {
  secret = "";
  try {
    localStorage.removeItem(SECRET);
  } catch {
    /* nothing is kept */
  }
}

export const get = (path, query) => call("GET", withQuery(path, query));
export const post = (path, body = {}, options) => call("POST", path, body, options);

export function withQuery(path, query = {}) {
  const parts = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return parts.length ? `${path}?${new URLSearchParams(parts)}` : path;
}

// A browser has six connections to an address, for all its windows; WebSockets are not counted. So everything that
// waits for something to happen does so in one of these, and in a request where none can be opened: some browsers
// refuse them behind a certificate that is accepted, but not installed; some proxies do not pass them on.
export const openSocket = (path, query) =>
  new WebSocket(withQuery(`${location.origin.replace(/^http/, "ws")}${path}`, query), secret ? ["legion", secret] : []);

function isReady(socket) {
  if (socket.readyState === WebSocket.OPEN) return true;
  return new Promise((resolve) => {
    socket.onopen = () => resolve(true);
    socket.onclose = () => resolve(false);
  });
}

// Batches of events after a number, for as long as the connection lasts. An empty one is a sign of life.
export async function* events(after, signal) {
  const socket = openSocket("/ws/events", { after });
  const arrived = [];
  let ended = false;
  let wake = (/** @type {any} */ _) => {};
  const end = () => {
    ended = true;
    wake(null);
  };
  signal.addEventListener("abort", () => {
    socket.close();
    end();
  });
  if (!(await isReady(socket))) {
    if (!signal.aborted) yield* streamed(after, signal);
    return;
  }
  socket.onmessage = (event) => {
    arrived.push(JSON.parse(event.data));
    wake(null);
  };
  socket.onclose = end;
  try {
    while (arrived.length || !ended) {
      if (arrived.length) yield arrived.shift();
      else
        await new Promise((resolve) => {
          wake = resolve;
        });
    }
  } finally {
    socket.close();
  }
}

// The same as server-sent events. EventSource cannot send our header.
async function* streamed(after, signal) {
  const response = await fetch(withQuery("/v1/events", { after }), { headers: headers(), credentials: "omit", signal });
  if (!response.ok) await answerOf(response);
  const reader = /** @type {any} */ (response.body).pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop() ?? "";
    yield blocks.flatMap(parse);
  }
}

function parse(block) {
  const data = block
    .split("\n")
    .filter((line) => line.startsWith("data:"))
    .map((line) => line.slice(5))
    .join("\n");
  return data ? [JSON.parse(data)] : [];
}

// Requests for output, one after the other: each is answered when something was printed.
export function outputRequests() {
  let socket = /** @type {any} */ (null);
  const close = () => {
    socket?.close();
    socket = null;
  };
  const ask = async (wanted) => {
    if (!socket || socket.readyState > WebSocket.OPEN) socket = openSocket("/ws/output");
    const mine = socket;
    let timer = 0;
    try {
      return await Promise.race([
        answered(mine, wanted, () => socket === mine),
        new Promise((_, reject) => {
          timer = setTimeout(() => {
            mine.close();
            reject(new Problem("Legion does not answer; try again.", 0));
          }, WAITING_SECONDS * 1000);
        }),
      ]);
    } finally {
      clearTimeout(timer);
    }
  };
  return { ask, close };
}

async function answered(socket, wanted, isWanted) {
  if (!(await isReady(socket))) {
    if (!isWanted()) throw new Problem("The view was left.", 0);
    return post("/v1/output?timeout=25", wanted, { waits: true });
  }
  return new Promise((resolve, reject) => {
    socket.onmessage = (event) => resolve(JSON.parse(event.data));
    socket.onclose = () => reject(new Problem("Legion is not reachable; is it running?", 0));
    socket.send(JSON.stringify(wanted));
  });
}
