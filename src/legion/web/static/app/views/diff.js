// A change, file by file. A comment on a line is kept in this browser until all are sent back as one feedback.
import { html, useMemo, useState } from "../lib.js";
import { Act, Empty } from "../parts.js";
import { mayAct, store, stored } from "../state.js";
import { post } from "../api.js";
import { plural } from "../format.js";

const MOST_LINES = 400;

export function DiffView({ diff, ticket, canSendBack }) {
  const key = `comments.${ticket}`;
  const [comments, setComments] = useState(() => stored(key, {}));
  const [open, setOpen] = useState(null);
  const files = useMemo(() => parse(diff.text), [diff.text]);
  const save = (next) => { setComments(next); store(key, Object.keys(next).length ? next : null); };
  const written = Object.entries(comments);
  if (!files.length) return html`<${Empty}>${diff.live ? "Its agent has changed nothing yet." : "It changes nothing."}</${Empty}>`;
  return html`<div class="diff">
    <p class="hint">${plural(files.length, "file")}, <span class="plus">+${sum(files, "added")}</span> <span class="minus">−${sum(files, "removed")}</span>
      ${diff.live && " as of now: its agent is at work"}. ${mayAct.value && canSendBack && "Press a line's number to comment on it."}</p>
    ${written.length > 0 && canSendBack && html`<div class="sendback">
      <b>${written.length} ${written.length === 1 ? "comment" : "comments"}</b>
      <${Act} keys="b" kind="primary" run=${async () => { const done = await post(`/v1/tickets/${ticket}/bounce`, { feedback: feedback(comments) }); save({}); return done; }}>Send back with all comments</${Act}>
      <button onClick=${() => save({})}>Discard</button></div>`}
    ${files.map((file) => html`<${File} file=${file} key=${file.name} comments=${comments} open=${open} canComment=${canSendBack && mayAct.value}
      onOpen=${setOpen} onSave=${(place, text) => {
        const next = { ...comments };
        if (text) next[place] = text; else delete next[place];
        save(next);
        setOpen(null);
      }} />`)}</div>`;
}

const sum = (files, field) => files.reduce((all, file) => all + file[field], 0);

const feedback = (comments) => Object.entries(comments).map(([place, text]) => `${place}: ${text}`).join("\n");

function File({ file, comments, open, onOpen, onSave, canComment }) {
  const [folded, setFolded] = useState(file.lines.length > MOST_LINES);
  return html`<section class="file">
    <h3><button aria-expanded=${!folded} onClick=${() => setFolded(!folded)}>${folded ? "▸" : "▾"} ${file.name}</button>
      <span class="plus">+${file.added}</span> <span class="minus">−${file.removed}</span></h3>
    ${!folded && html`<div class="lines" tabindex="0">${file.lines.map((line, position) => {
      const place = `${file.name}:${line.now ?? line.before ?? 0}`;
      return html`<div class="diff-line ${line.kind}" key=${position}>
        <button class="no" disabled=${!canComment || line.kind === "hunk"} aria-label=${`Comment on line ${line.now ?? line.before}`} onClick=${() => onOpen(place)}>${line.before ?? ""}</button>
        <button class="no" disabled=${!canComment || line.kind === "hunk"} tabindex="-1" aria-hidden="true" onClick=${() => onOpen(place)}>${line.now ?? ""}</button>
        <code>${line.marked ? html`${line.marked[0]}<mark>${line.marked[1]}</mark>${line.marked[2]}` : line.text || " "}</code></div>
        ${line.kind !== "hunk" && line.kind !== "removed" && comments[place] && open !== place && html`<div class="comment" onClick=${() => canComment && onOpen(place)}>${comments[place]}</div>`}
        ${line.kind !== "hunk" && line.kind !== "removed" && open === place && html`<${Comment} text=${comments[place] ?? ""} onSave=${(text) => onSave(place, text)} onLeave=${() => onOpen(null)} />`}`;
    })}</div>`}</section>`;
}

function Comment({ text, onSave, onLeave }) {
  const [now, setNow] = useState(text);
  return html`<div class="comment writing"><textarea rows="3" aria-label="Comment" autofocus value=${now} onInput=${(event) => setNow(event.target.value)}
    onKeyDown=${(event) => { if (event.key === "Escape") { event.stopPropagation(); onLeave(); } if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) onSave(now.trim()); }}></textarea>
    <button class="primary" onClick=${() => onSave(now.trim())}>Keep</button><button onClick=${onLeave}>Cancel</button>
    ${text && html`<button onClick=${() => onSave("")}>Remove</button>`}</div>`;
}

// Reads a unified diff. Nothing of it is trusted: it becomes text nodes.
export function parse(text) {
  const files = [];
  let file = null;
  let before = 0;
  let now = 0;
  for (const line of text.split("\n")) {
    if (line.startsWith("diff --git ")) {
      file = { name: line.slice(11).split(" b/").pop(), lines: [], added: 0, removed: 0, inHunk: false };
      files.push(file);
    } else if (!file) {
      continue;
    } else if (line.startsWith("@@")) {
      const found = /^@@ -(\d+)(?:,\d+)? \+(\d+)/.exec(line);
      before = Number(found?.[1] ?? 0);
      now = Number(found?.[2] ?? 0);
      file.inHunk = true;
      file.lines.push({ kind: "hunk", text: line });
    } else if (!file.inHunk) {
      if (line.startsWith("+++ b/")) file.name = line.slice(6);
      else if (/^(Binary|rename|new file|deleted|similarity|old mode|new mode)/.test(line)) file.lines.push({ kind: "hunk", text: line });
    } else if (line.startsWith("+")) {
      file.added += 1;
      file.lines.push({ kind: "added", now: now++, text: line.slice(1) });
    } else if (line.startsWith("-")) {
      file.removed += 1;
      file.lines.push({ kind: "removed", before: before++, text: line.slice(1) });
    } else if (line.startsWith(" ")) {
      file.lines.push({ kind: "same", before: before++, now: now++, text: line.slice(1) });
    }
  }
  files.forEach((one) => mark(one.lines));
  return files;
}

// Marks what differs inside pairs of a removed and an added line.
function mark(lines) {
  for (let start = 0; start < lines.length; start += 1) {
    if (lines[start].kind !== "removed") continue;
    let middle = start;
    while (lines[middle]?.kind === "removed") middle += 1;
    let end = middle;
    while (lines[end]?.kind === "added") end += 1;
    if (middle - start === end - middle) {
      for (let offset = 0; offset < middle - start; offset += 1) pair(lines[start + offset], lines[middle + offset]);
    }
    start = Math.max(start, end - 1);
  }
}

function pair(old, fresh) {
  const [a, b] = [old.text, fresh.text];
  if (a.length > 2000 || b.length > 2000) return;
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  if (head + tail < 3) return;
  old.marked = [a.slice(0, head), a.slice(head, a.length - tail), a.slice(a.length - tail)];
  fresh.marked = [b.slice(0, head), b.slice(head, b.length - tail), b.slice(b.length - tail)];
}
