// What the page knows: the session, the connection, the board. The stream of events says when to read again.
import { computed, signal, useEffect, useRef, useState } from "./lib.js";
import { events, get, Problem, watchAnswers, withQuery } from "./api.js";
import { isWriting } from "./writing.js";

export const session = signal(/** @type {any} */ (null));
export const shutOut = signal("");
export const connection = signal("connecting"); // connecting, live, lost
export const board = signal(/** @type {any} */ (null));
export const boardAt = signal(0);
export const questions = signal(/** @type {any[]} */ ([]));
export const inboxRead = signal(false); // Without it, no question is known, and none may wait.
export const waiting = signal(/** @type {any[]} */ ([])); // All that only the person can settle, in order.
export const outdated = signal("");
export const project = signal(stored("project", ""));
export const toasts = signal(/** @type {any[]} */ ([]));
export const mayAct = computed(() => session.value?.rights !== "read-only");
export const isFull = computed(() => session.value?.rights === "full");

const GAP = 300; // Milliseconds between two reads of the same data: a burst of events costs one.
const SILENCE = 40_000; // The daemon sends a sign of life every 15 s.
const HEARTBEAT = 16_000;
const RETRIES = [500, 1000, 2000, 5000];
const HIDDEN = "hidden";
const HIDDEN_MS = 10_000;
let notifies = false;
let boardRead = false; // What is shown may also be what an earlier visit knew.
const listeners = new Set();
const RECONNECTED = { kind: "reconnected", ticket: null };

export function stored(key, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(`legion.${key}`)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

export function store(key, value) {
  try {
    if (value === null) localStorage.removeItem(`legion.${key}`);
    else localStorage.setItem(`legion.${key}`, JSON.stringify(value));
  } catch {
    /* a browser that keeps nothing: the page works, and forgets */
  }
}

export function toast(message, kind = "info") {
  const one = { message, kind, id: Math.random() };
  toasts.value = [...toasts.value.slice(-3), one];
  setTimeout(() => dismiss(one), kind === "error" ? 12_000 : 6_000);
}

export const dismiss = (one) => {
  toasts.value = toasts.value.filter((other) => other !== one);
};

// Runs an action of the person, and reports how it ended.
export async function act(action) {
  try {
    const answer = await action();
    if (answer?.message) toast(answer.message);
    for (const note of answer?.notes ?? []) toast(note);
    refresh(); // Not everything that an action changes is an event.
    return answer ?? true;
  } catch (error) {
    toast(error.message, "error");
    return null;
  }
}

export function subscribe(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

// A function that runs `work` one at a time and not more often than every GAP; calls in between become one.
function paced(work) {
  let running = false;
  let wanted = false;
  const run = async () => {
    if (running) {
      wanted = true;
      return;
    }
    running = true;
    try {
      await work();
    } finally {
      setTimeout(() => {
        running = false;
        if (wanted) {
          wanted = false;
          run();
        }
      }, GAP);
    }
  };
  return run;
}

// Data of the daemon, read again whenever an event matters to it, and by `again.current()`.
export function useLive(load, deps, wants = (/** @type {any} */ _) => true) {
  const again = useRef(() => {});
  const [state, set] = useState({ data: /** @type {any} */ (null), error: /** @type {any} */ (null) });
  useEffect(() => {
    let gone = false;
    set({ data: null, error: null });
    const run = paced(async () => {
      if (gone) return;
      try {
        const data = await load();
        if (!gone) set({ data, error: null });
      } catch (error) {
        if (!gone) set((old) => ({ data: old.data, error }));
      }
    });
    const off = subscribe((batch) => {
      if (batch.some((one) => one.kind === "reconnected" || wants(one))) run();
    });
    again.current = run;
    run();
    return () => {
      gone = true;
      off();
    };
  }, deps);
  return { ...state, again };
}

/**
 * What the daemon answers at a path, read again when an event of such a kind, or one that `wants`, happens. No path, no
 * request.
 * @param {any} path
 * @param {object} query
 * @param {RegExp | ((event: any) => boolean)} wants
 */
export const useRead = (path, query = {}, wants = () => false) =>
  useLive(
    async () => (path ? get(path, query) : null),
    [path && withQuery(path, query)],
    wants instanceof RegExp ? (one) => wants.test(one.kind) : wants,
  );

// The project that an act of a view without one is about.
export const cwdOf = () => project.value || board.value?.projects[0]?.root || "";

const readBoard = paced(async () => {
  try {
    const [status, inbox] = await Promise.all([get("/v1/status", { cwd: project.value }), get("/v1/inbox")]);
    board.value = status;
    boardRead = true;
    boardAt.value = Date.now();
    questions.value = inbox.questions;
    waiting.value = inbox.waiting;
    inboxRead.value = true;
    store("last", { board: status, inbox, at: boardAt.value });
  } catch (error) {
    if (error.status === 404 && project.value) choose("");
    else if (error.status >= 400 && error.status !== 401) toast(error.message, "error");
  }
});

export function choose(root) {
  project.value = root;
  store("project", root || null);
  readBoard();
}

export const reread = readBoard;

// Reads everything that is shown again.
export function refresh() {
  readBoard();
  spread([RECONNECTED]);
}

// The daemon was updated: the page loads itself again, once, and not while something is typed.
function renew(version) {
  try {
    if (!isWriting() && sessionStorage.getItem("legion.renewed") !== version) {
      sessionStorage.setItem("legion.renewed", version);
      location.reload();
      return;
    }
  } catch {
    /* a browser that keeps nothing: the person reloads */
  }
  outdated.value = version;
}

watchAnswers({
  version: renew,
  shutOut: (message) => {
    shutOut.value = message;
  },
});

export async function start() {
  const last = stored("last", null);
  if (last) {
    board.value = last.board;
    boardAt.value = last.at;
    questions.value = last.inbox?.questions ?? [];
    waiting.value = last.inbox?.waiting ?? [];
    inboxRead.value = Boolean(last.inbox);
  }
  // Both at once: the board is what the first view waits for.
  await enter(readBoard());
}

// Finds out which device this is, then follows the events behind the board that is being read.
async function enter(reading) {
  for (let failed = 0; ; failed += 1) {
    try {
      session.value = await get("/web/session");
      shutOut.value = "";
      break;
    } catch (error) {
      if (error instanceof Problem && error.status === 401) {
        shutOut.value = error.message;
        return;
      }
      connection.value = "lost";
      await pause(failed);
    }
  }
  follow(reading);
}

async function follow(reading) {
  let after = null;
  for (let failed = 0; shutOut.value === ""; failed += 1) {
    await lookedAt(() => notifies);
    const abort = new AbortController();
    const restful = rest(abort);
    let timer = 0;
    let heard = Date.now();
    const alive = () => {
      heard = Date.now();
      clearTimeout(timer);
      timer = setTimeout(() => abort.abort(), SILENCE);
    };
    const awake = onWaking((networkChanged) => {
      if (networkChanged || Date.now() - heard > HEARTBEAT) abort.abort();
    });
    try {
      alive();
      if (after === null) await reading;
      if (after !== null || !boardRead) await readBoard();
      // A new browser starts at the present; one that was cut off resumes behind the last event that it read.
      after ??= board.value?.last_event ?? 0;
      for await (const batch of shutOut.value ? [] : events(after, abort.signal)) {
        alive();
        if (connection.value !== "live") {
          if (connection.value === "lost") readBoard();
          connection.value = "live";
          spread([RECONNECTED]);
        }
        failed = 0;
        if (batch.length) {
          after = batch[batch.length - 1].n;
          tell(batch);
        }
      }
    } catch (error) {
      if (error.status === 404 && project.value) choose("");
    }
    clearTimeout(timer);
    restful();
    awake();
    if (abort.signal.reason === HIDDEN) {
      failed = -1;
      continue;
    }
    connection.value = "lost";
    await pause(failed);
  }
}

// A tab in the background gives up its stream, which costs the daemon a thread, and resumes behind the last event when
// it is looked at; one of them keeps it where notifications are wanted.
function rest(abort) {
  let timer = 0;
  const look = () => {
    clearTimeout(timer);
    if (document.hidden && !notifies) timer = setTimeout(() => abort.abort(HIDDEN), HIDDEN_MS);
  };
  look();
  document.addEventListener("visibilitychange", look);
  return () => {
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", look);
  };
}

// A phone that slept, or has another network now, holds a connection that is dead and does not know it.
function onWaking(act) {
  const online = () => act(true);
  const seen = () => {
    if (!document.hidden) act(false);
  };
  window.addEventListener("online", online);
  document.addEventListener("visibilitychange", seen);
  return () => {
    window.removeEventListener("online", online);
    document.removeEventListener("visibilitychange", seen);
  };
}

// Waits until the page is looked at, or `orElse` holds when that changes.
export function lookedAt(orElse = () => false) {
  if (!document.hidden || orElse()) return undefined;
  /** @type {Promise<void>} */
  const seen = new Promise((resolve) => {
    const look = () => {
      if (document.hidden && !orElse()) return;
      document.removeEventListener("visibilitychange", look);
      resolve();
    };
    document.addEventListener("visibilitychange", look);
  });
  return seen;
}

// One tab of a browser that may notify stays connected in the background. Such an address always has locks.
export function keepNotifying() {
  if (!("Notification" in window) || Notification.permission !== "granted" || !navigator.locks) return;
  navigator.locks.request("legion-notifies", () => {
    notifies = true;
    return new Promise(() => {});
  });
}

function tell(batch) {
  readBoard();
  spread(batch);
}

function spread(batch) {
  for (const listener of listeners) listener(batch);
}

// Waits longer after each failure; a phone that wakes up or finds its network tries at once.
/** @returns {Promise<void>} */
function pause(failed) {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      window.removeEventListener("online", done);
      document.removeEventListener("visibilitychange", done);
      resolve();
    };
    const timer = setTimeout(done, RETRIES[Math.min(failed, RETRIES.length - 1)]);
    window.addEventListener("online", done);
    document.addEventListener("visibilitychange", done);
  });
}
