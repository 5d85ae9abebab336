// A change, file by file. A comment on a line is kept in this browser until all are sent back as one feedback.
import { html, useEffect, useMemo, useRef, useState } from "../lib.js";
import { Act, Empty, Odd } from "../parts.js";
import { mayAct, store, stored, useLive } from "../state.js";
import { get, post } from "../api.js";
import { plural } from "../format.js";
import { odd } from "../odd.js";
import { Writing, useDraft } from "../writing.js";

const MOST_OPEN = 2000; // Lines of files that are not folded.
const MOST_DRAWN = 1000; // A longer change is drawn in pieces, where one looks.
const PIECE = 100;
const GLANCE = 8;
const LINE = 20; // Pixels, as in the style.
const NEAR = "1500px 0px";

export function DiffView({ diff, ticket, canSendBack }) {
  const key = `comments.${ticket}`;
  const [comments, setComments] = useState(() => stored(key, []));
  const [open, setOpen] = useState(null);
  const files = useMemo(() => parse(diff.text), [diff.text]);
  const save = (next) => { setComments(next); store(key, next.length ? next : null); };
  if (!files.length) return html`<${Empty}>${diff.live ? "Its agent has changed nothing yet." : "It changes nothing."}</${Empty}>`;
  const stale = comments.filter((one) => !files.some((file) => file.lines.some((line) => isOn(one, file, line))));
  const send = async () => {
    const done = await post(`/v1/tickets/${ticket}/bounce`, { feedback: comments.map(worded).join("\n") });
    save([]);
    return done;
  };
  const change = (place, text) => {
    save([...comments.filter((one) => !same(one, place)), ...(text ? [{ ...place, text }] : [])]);
    setOpen(null);
  };
  const total = sum(files, "size");
  return html`<div class="diff">
    <p class="hint">${plural(files.length, "file")}, <span class="plus">+${sum(files, "added")}</span> <span class="minus">−${sum(files, "removed")}</span>
      ${diff.live && (diff.as_of ? ` as of ${new Date(diff.as_of * 1000).toLocaleTimeString()}: its agent is at work on another machine` : " as of now: its agent is at work")}. ${mayAct.value && canSendBack && "Press a line's number to comment on it."}</p>
    <${Odd} in=${files.flatMap((file) => (file.folded ? file.odd : []))} where="A file that is folded" />
    ${comments.length > 0 && canSendBack && html`<div class="sendback"><b>${plural(comments.length, "comment")}</b>
      <${Act} keys="b" kind="primary" run=${send}>Send back with all comments</${Act}>
      <${Act} ask="Discard all comments?" run=${async () => save([])}>Discard</${Act}></div>`}
    ${stale.map((one) => html`<p class="comment" key=${one.file + one.side + one.line}>${worded(one)}
      <span class="hint">This line is not in the change any more.</span>
      <button onClick=${() => change(one, "")}>Remove</button></p>`)}
    ${files.map((file) => html`<${File} file=${file} key=${file.name} all=${total <= MOST_DRAWN} open=${open} onOpen=${setOpen}
      comments=${comments} canComment=${canSendBack && mayAct.value} onSave=${change} />`)}</div>`;
}

// The first lines of a ticket's change, and a link to all.
export function Glance({ ticket }) {
  const { data } = useLive(() => get(`/v1/tickets/${ticket}/diff`), [ticket], (one) => one.ticket === ticket);
  const files = useMemo(() => parse(data?.text ?? ""), [data]);
  if (!files.length) return null;
  const first = files.flatMap((file) => file.lines.filter((line) => /added|removed/.test(line.kind))).slice(0, GLANCE);
  return html`<div class="diff"><p><a href=${`#/ticket/${ticket}/diff`}>Read the change</a>: ${plural(files.length, "file")},
      <span class="plus"> +${sum(files, "added")}</span> <span class="minus">−${sum(files, "removed")}</span></p>
    <${Odd} in=${files.flatMap((file) => file.odd)} where="This change" />
    <div class="lines" tabindex="0">${first.map((line, n) => html`<div key=${n} class="diff-line ${line.kind}">
      <span class="no">${line.before ?? ""}</span><span class="no">${line.now ?? ""}</span><code>${line.text || " "}</code></div>`)}</div></div>`;
}

const sum = (files, field) => files.reduce((all, file) => all + file[field], 0);
const placeOf = (file, line) => ({
  file: file.name, side: line.kind === "removed" ? "-" : "+", line: line.now ?? line.before, quote: line.text,
});
const same = (one, other) => one.file === other.file && one.side === other.side && one.line === other.line && one.quote === other.quote;
// A comment belongs to the line that it was written on: where another text is there now, it is on none.
const isOn = (one, file, line) => line.kind !== "hunk" && one.file === file.name && one.line === (line.now ?? line.before)
  && (one.side === "-") === (line.kind === "removed") && one.quote === line.text;
const worded = ({ file, side, line, quote, text }) => `${file}:${line}${side === "-" ? " (a removed line)" : ""}: ${text}\n    > ${quote}`;

function File({ file, all, comments, open, onOpen, onSave, canComment }) {
  const [folded, setFolded] = useState(file.folded);
  const mine = comments.filter((one) => one.file === file.name);
  const pieces = useMemo(() => Array.from({ length: Math.ceil(file.size / PIECE) }, (_, n) => n * PIECE), [file]);
  return html`<section class="file">
    <h2><button aria-expanded=${!folded} data-folds="" onClick=${() => setFolded(!folded)}>${folded ? "▸" : "▾"} ${file.name}</button>
      <span class="plus">+${file.added}</span> <span class="minus">−${file.removed}</span></h2>
    <${Odd} in=${file.odd} where=${file.name} />
    ${!folded && html`<div class="lines" tabindex="0">${pieces.map((first) => html`<${Piece} key=${first} file=${file}
      lines=${file.lines.slice(first, first + PIECE)} all=${all} comments=${mine} open=${open?.file === file.name ? open : null}
      onOpen=${onOpen} onSave=${onSave} canComment=${canComment} />`)}</div>`}</section>`;
}

// A hundred lines, in the document only while they are near what the person looks at, or have a comment.
function Piece({ file, lines, all, comments, open, onOpen, onSave, canComment }) {
  const box = useRef(null);
  const [near, setNear] = useState(all);
  useEffect(() => {
    if (all) return undefined;
    const watch = new IntersectionObserver(([seen]) => setNear(seen.isIntersecting), { rootMargin: NEAR });
    watch.observe(box.current);
    return () => watch.disconnect();
  }, [all]);
  const drawn = near || lines.some((line) => comments.some((one) => isOn(one, file, line)) || (open && isOn(open, file, line)));
  return html`<div class="piece" ref=${box} style=${{ minHeight: `${lines.length * LINE}px` }}>${drawn && lines.map((line, n) => html`
    <${Line} key=${n} file=${file} line=${line} comment=${comments.find((one) => isOn(one, file, line))}
      open=${open && isOn(open, file, line)} onOpen=${onOpen} onSave=${onSave} canComment=${canComment} />`)}</div>`;
}

function Line({ file, line, comment, open, onOpen, onSave, canComment }) {
  const place = placeOf(file, line);
  const closed = !canComment || line.kind === "hunk";
  const number = line.now ?? line.before;
  const press = () => onOpen(open ? null : place);
  // A click on the code selects the line, for the keys.
  const select = ({ target, currentTarget }) => {
    if (!target.closest("code") || !getSelection().isCollapsed) return;
    if (!closed && matchMedia("(pointer: coarse)").matches) press(); // A finger misses the number.
    else currentTarget.querySelector(".no").focus();
  };
  return html`<div class="diff-line ${line.kind}" onClick=${select}>
      <button class="no" disabled=${closed} aria-expanded=${closed ? undefined : Boolean(open)} onClick=${press}
        aria-label=${`Comment on ${line.kind === "removed" ? "removed line" : "line"} ${number}`}>${line.before ?? ""}</button>
      <button class="no" disabled=${closed} tabindex="-1" aria-hidden="true" onClick=${press}>${line.now ?? ""}</button>
      <code>${line.marked ? html`${line.marked[0]}<mark>${line.marked[1]}</mark>${line.marked[2]}` : line.text || " "}</code></div>
    ${comment && !open && html`<button class="comment" disabled=${closed} onClick=${press}>${comment.text}</button>`}
    ${open && html`<${Comment} place=${place} text=${comment?.text ?? ""} onSave=${(text) => onSave(place, text)} />`}`;
}

function Comment({ place, text, onSave }) {
  const [now, setNow] = useDraft(`${place.file} ${place.side}${place.line} ${place.quote}`, text);
  const leave = (kept) => { setNow(null); onSave(kept); };
  const close = () => leave(now.trim());
  const sends = (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) close(); };
  return html`<${Writing} className="comment" close=${close}><textarea rows="3" aria-label="Comment" value=${now}
      onInput=${(event) => setNow(event.target.value)} onKeyDown=${sends}></textarea>
    <button class="primary" onClick=${close}>Keep</button><button onClick=${() => leave("")}>Remove</button></${Writing}>`;
}

// A name in a diff: git puts odd ones into quotes, with escapes.
function unquoted(text) {
  if (!text.startsWith('"')) return text;
  const bytes = [];
  for (const [, octal, letter, plain] of text.slice(1, -1).matchAll(/\\([0-7]{3})|\\(.)|([^\\]+)/g)) {
    if (octal) bytes.push(parseInt(octal, 8));
    else bytes.push(...new TextEncoder().encode(plain ?? { n: "\n", t: "\t", r: "\r" }[letter] ?? letter));
  }
  return new TextDecoder().decode(Uint8Array.from(bytes));
}

const nameIn = (header) => unquoted(/ ("b\/(?:[^"\\]|\\.)*"|b\/.*)$/.exec(header)?.[1] ?? header).slice(2);

// Reads a unified diff. Nothing of it is trusted: it becomes text nodes.
export function parse(text) {
  const files = [];
  let file = null;
  let before = 0;
  let now = 0;
  for (const line of text.split("\n")) {
    if (line.startsWith("diff --git ")) {
      file = { name: nameIn(line), lines: [], added: 0, removed: 0, inHunk: false };
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
      if (/^\+\+\+ "?b\//.test(line)) file.name = nameIn(line);
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
  let left = MOST_OPEN;
  for (const one of files) {
    mark(one.lines);
    one.size = one.lines.length;
    one.folded = one.size > left;
    if (!one.folded) left -= one.size;
    one.odd = [...odd(one.name), ...one.lines.flatMap((line) => (line.kind === "added" ? odd(line.text) : []))];
  }
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
