// What agents print. It is no event: while a page looks at it, one request waits until something was printed.
import { outputRequests } from "./api.js";
import { lookedAt, subscribe } from "./state.js";

const FAILED = 3000; // Milliseconds until it is tried again.

// Runs `step` until the returned function is called, but only while the page is looked at.
function loop(step) {
  const leave = new AbortController();
  const run = async () => {
    while (!leave.signal.aborted) {
      await lookedAt();
      try {
        if (!leave.signal.aborted) await step(leave.signal);
      } catch {
        // The line at the top says that the connection is lost.
        await new Promise((resolve) => setTimeout(resolve, FAILED));
      }
    }
  };
  run();
  return () => leave.abort();
}

// The log of a ticket: `read` gets the place that was read so far, and answers with the next piece.
export function followLog(ticket, read) {
  let offset = 0;
  let wake = (/** @type {any} */ _) => {};
  const requests = outputRequests();
  const off = subscribe((batch) => {
    if (batch.some((one) => one.kind === "reconnected" || one.ticket === ticket)) wake(null);
  });
  const stop = loop(async (leave) => {
    const moved = new Promise((resolve) => {
      wake = resolve;
    });
    const piece = await read(offset);
    if (leave.aborted) return;
    offset = piece.next_offset;
    if (piece.text) return;
    if (piece.run === null || piece.ended)
      await moved; // The next attempt is an event of the ticket.
    else await printedOr(moved, requests, { ticket, seen: { [piece.run]: offset } });
  });
  return () => {
    off();
    stop();
    wake(null);
    requests.close();
  };
}

// Waits for output or for an event, whichever comes first. An answer that is no longer waited for must not be taken for
// the next.
async function printedOr(moved, requests, wanted) {
  const printed = requests.ask(wanted);
  printed.catch(() => {});
  if ((await Promise.race([moved.then(() => "moved"), printed])) === "moved") requests.close();
}

// The last output of all runs at work: `show` gets the runs and a text for each.
export function followAll(cwd, show) {
  const texts = new Map();
  const seen = {};
  const requests = outputRequests();
  const stop = loop(async (leave) => {
    const answer = await requests.ask({ cwd, seen });
    if (leave.aborted) return;
    const now = new Set(answer.running.map((one) => String(one.run)));
    for (const run of Object.keys(seen))
      if (!now.has(run)) {
        delete seen[run];
        texts.delete(Number(run));
      }
    for (const run of now) seen[run] ??= 0;
    for (const piece of answer.pieces) {
      seen[piece.run] = piece.next_offset;
      texts.set(piece.run, ((texts.get(piece.run) ?? "") + piece.text).slice(-8000));
    }
    show(answer.running, texts);
  });
  return () => {
    stop();
    requests.close();
  };
}
