// The parts of a ticket's page: live output, change, receipts, reviews, history, and all that is known of it.
import { html, useEffect, useRef, useState } from "../lib.js";
import { Badge, Empty, Facts, Hint, Items, Line, Opener, Output, Say, Step, Table, Trouble, copy } from "../parts.js";
import { act, mayAct, toast, useRead } from "../state.js";
import { followLog } from "../output.js";
import { get, post } from "../api.js";
import { clock, spentOf, day, duration, plain, plural } from "../format.js";
import { DiffView } from "./diff.js";
import { Prose } from "../prose.js";

const MOST_OUTPUT = 400_000;

export function Live({ page, id }) {
  const [lines, setLines] = useState("");
  const [run, setRun] = useState(undefined);
  const box = useRef(null);
  const stays = useRef(true);
  useEffect(() => {
    setLines("");
    let known = null;
    return followLog(id, async (seen) => {
      let piece = await get(`/v1/tickets/${id}/log`, { offset: seen });
      if (piece.run !== known) {
        known = piece.run;
        if (seen > 0) piece = await get(`/v1/tickets/${id}/log`, { offset: 0 });
        setLines("");
      }
      setRun(piece.run);
      if (piece.text) setLines((old) => (old + plain(piece.text)).slice(-MOST_OUTPUT));
      return piece;
    });
  }, [id]);
  useEffect(() => {
    if (stays.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [lines]);
  const scrolled = ({ currentTarget: element }) => {
    stays.current = element.scrollHeight - element.scrollTop - element.clientHeight < 40;
  };
  const none = page.ticket.checkpoint ? "A checkpoint: no agent works on it." : "No agent has started it yet.";
  const tell = (text) => post(`/v1/tickets/${id}/tell`, { text }, { waits: true });
  const tells = page.ticket.offers.includes("tell");
  return html`<section>
    ${run === null && html`<${Empty}>${none}</${Empty}>`}
    ${
      run !== null &&
      html`<pre role="region" class="output live" ref=${box} onScroll=${scrolled} tabindex="0" aria-label="Its output">
        ${lines || (run !== undefined && "No output yet.")}
      </pre>`
    }
    ${tells && html`<${Line} keys="i" label="Send a message to its agent" send=${tell} />`}
  </section>`;
}

export function Change({ page, id }) {
  const { data, error } = useRead(`/v1/tickets/${id}/diff`, {}, (one) => one.ticket === id);
  if (!data) return html`<${Trouble} error=${error} />`;
  return html`<${DiffView} diff=${data} ticket=${id} canSendBack=${page.ticket.offers.includes("bounce")} />`;
}

const BACKING = { proven: "good", green: "good", red: "bad" };
const at = ({ path, line }) => `${path}${line ? `:${line}` : ""}`;

export function Receipts({ page }) {
  const red = page.receipts.findLast((one) => one.verdict !== "green");
  const evidence = (one) => html`
    <${Badge} of=${one.backing} kind=${BACKING[one.backing] ?? "needs"} /> ${one.criterion}
    ${one.by && html` <code>${one.by}</code>`}${one.idle && " (also green without the change)"}
    ${one.own && " (decided by what the change itself wrote)"}
  `;
  const weakened = (one) => html`<b>${one.sign}</b> ${at(one)} ${one.words}`;
  return html`<section>
    <${Items} name="Criteria" className="evidence" of=${page.evidence} row=${evidence} />
    <${Items} name="Weaker tests?" of=${page.weakened} row=${weakened} />
    ${!page.receipts.length && html`<${Empty}>No check has run yet.</${Empty}>`}
    ${page.not_needed.map((one) => html`<p class="hint" key=${one}>Not needed: ${one}</p>`)}
    <${Hint} of=${page.merged && `Merged by Legion: ${page.merged}`} />
    ${[...page.receipts].reverse().map((one, n) => html`<${Receipt} key=${n} one=${one} open=${one === red} />`)}
  </section>`;
}

function Receipt({ one, open }) {
  const trusts = one.trusted && `Trusted by ${one.trusted} although it stays green for broken code.`;
  return html`<details class="receipt" open=${open}>
    <summary>
      <${Badge} of=${one.verdict} kind=${one.verdict === "green" ? "good" : "bad"} /> <b>${one.name}</b> ${""}
      <${Hint} of=${`${duration(one.duration)}, ${clock(one.made_at)}, ${one.commit.slice(0, 10)}`} />
      <${Hint} of=${one.without && `${one.without} without the change`} />
    </summary>
    <p><code>${one.command}</code></p>
    ${trusts && html`<p class="hint">${trusts}</p>`}
    <${Output} of=${plain(one.tail) || "No output."} />
    <p class="hint">Whole output: ${one.output}</p>
  </details>`;
}

const VERDICTS = { approve: "good", changes: "bad" };

export function Reviews({ page }) {
  if (!page.reviews.length) return html`<${Empty}>No reviewer has read it.</${Empty}>`;
  const criterion = (one) => html`
    <${Badge} of=${one.met ? "met" : "not met"} kind=${one.met ? "good" : "bad"} /> ${""}
    criterion ${one.number} <${Hint} of=${one.why} />
  `;
  const finding = ({ weight, file, line, text }) => html`
    <b>${weight}</b> ${file && html`<code>${at({ path: file, line })}</code>`} ${text}
  `;
  const review = (one, n) => html`<article class="review" key=${n}>
    <h3>
      ${one.reader} <${Badge} of=${one.verdict || "reading"} kind=${VERDICTS[one.verdict] ?? "busy"} /> ${""}
      <${Hint} of=${`round ${one.round}${one.binding ? "" : ", not binding"}`} />
    </h3>
    <p class="hint">${one.why}</p>
    ${[one.summary, one.complaint].map((text) => text && html`<p>${text}</p>`)}
    <${Step} of=${one.overruled && "You let the change pass anyway."} />
    <${Items} className="evidence" of=${one.criteria} row=${criterion} />
    ${one.notes.map((note) => html`<p class="hint" key=${note}>${note}</p>`)}
    <${Items} of=${one.findings ?? []} row=${finding} />
  </article>`;
  return html`<section>${page.reviews.map(review)}</section>`;
}

// Steps of an agent that a person reads; the other lines of its journal are shown on request.
const STEPS = {
  said: (data) => data.text,
  called: (data) => `${data.tool}: ${data.input}`,
  told: (data) => `you wrote: ${data.text}`,
  kept: (data) => `state after ${data.tool}`,
  interrupted: () => "interrupted",
  retry: (data) => `the model did not answer (${data.error ?? data.status}): tried again`,
};
const words = (one) => (one.source === "run" && STEPS[one.kind]?.(one.data)) || one.words;

export function History({ id }) {
  const { data, error, again } = useRead("/v1/history", { ticket: id, last: 300 }, (one) => one.ticket === id);
  // The steps of an agent are no events: what it prints says that there are more.
  const read = async (offset) => {
    const piece = await get(`/v1/tickets/${id}/log`, { offset });
    if (piece.text) again.current();
    return piece;
  };
  useEffect(() => followLog(id, read), [id]);
  const [all, setAll] = useState(false);
  if (!data) return html`<${Trouble} error=${error} />`;
  const lines = data.lines.filter((one) => all || one.source === "event" || one.rewind || STEPS[one.kind]);
  const moment = (one) => html`<${Moment} key=${`${one.source}${one.run}.${one.n}`} id=${id} one=${one}
    text=${all ? one.words : words(one)} />`;
  const box = html`<input type="checkbox" checked=${all} onChange=${(event) => setAll(event.target.checked)} />`;
  return html`<section>
    <div class="toolbar">
      <label class="check">${box} every line of its journal</label>
      <${Hint} of=${data.omitted > 0 && `${plural(data.omitted, "older line")} not shown.`} />
    </div>
    <ol class="history">${lines.reverse().map(moment)}</ol>
  </section>`;
}

function Moment({ id, one, text }) {
  const [open, setOpen] = useState(false);
  const rewind = (feedback) => post(`/v1/tickets/${id}/rewind`, { to: one.rewind, feedback }, { waits: true });
  const label = "What should it do differently from here? (may stay empty)";
  return html`<li tabindex=${one.rewind ? "-1" : undefined}>
    <time title=${day(one.at)}>${clock(one.at)}</time><span class="moment">${text}</span>
    <${Hint} of=${one.rule} title=${one.why} />
    ${
      one.rewind &&
      mayAct.value &&
      html`<${Opener} keys="R" open=${open} toggle=${() => setOpen(!open)}>Rewind</${Opener}>`
    }
    ${
      open &&
      html`<${Say} label=${label} verb="Go back to this moment" to=${one.rewind} close=${() => setOpen(false)}
        send=${rewind} />`
    }
  </li>`;
}

const RUN = [
  ["Run", (run) => run.id],
  ["Attempt", (run) => run.attempt],
  ["Role", (run) => run.role || "builds"],
  ["Time", (run) => duration((run.ended_at ?? Date.now() / 1000) - run.started_at)],
  ["Ended", (run) => `${run.outcome ?? "at work"} ${run.detail}`],
  ["Cost", (run) => (run.usage ? spentOf(run.usage) : "")],
];

export function About({ page }) {
  const copied = async () => {
    await copy(page.worktree);
    toast("Copied.");
  };
  const texts = {
    "What it asks for": page.text,
    Context: page.context,
    Criteria: page.criteria,
    Plan: page.plan,
    "Plan of its agent": page.proposal,
    "Feedback to its last attempt": page.feedback,
  };
  const made = {
    project: page.ticket.project,
    driver: page.driver,
    model: page.model,
    team: page.crew?.team,
    labels: page.labels.join(", "),
  };
  const bounds = {
    "comes after": page.ticket.after.map((n) => `#${n}`).join(", "),
    proofs: page.prove.join("; "),
    files: page.files.join(", "),
  };
  const places = {
    worktree: page.worktree,
    change: page.change,
    landed: page.landed,
    access: page.access,
    "copied from": page.forked_from,
  };
  const file = (name) => html`<code>${name}</code>`;
  return html`<section>
    ${Object.entries(texts).map(([name, text]) => text && html`<h2 key=${name}>${name}</h2><${Prose} text=${text} />`)}
    <${Facts} of=${{ ...made, ...bounds, ...places }} />
    ${page.worktree && html`<button onClick=${() => act(copied)}>Copy the worktree's path</button>`}
    <${Items} name=${plural(page.changed_files.length, "changed file")} of=${page.changed_files.slice(0, 200)}
      row=${file} />
    <h2>Runs</h2>
    <${Table} of=${page.runs} columns=${RUN} row=${({ id }) => ({ key: id })} />
  </section>`;
}
