// A change, file by file. A comment on a line is kept in this browser until all are sent back as one feedback.
import { html, useEffect, useMemo, useRef, useState } from "../lib.js";
import { Act, Empty, Odd } from "../parts.js";
import { mayAct, useRead } from "../state.js";
import { post } from "../api.js";
import { plural } from "../format.js";
import { parse } from "./changes.js";
import { Writing, useDraft } from "../writing.js";

const MOST_DRAWN = 1000; // A longer change is drawn in pieces, where one looks.
const PIECE = 100;
const GLANCE = 8;
const LINE = 20; // Pixels, as in the style.
const NEAR = "1500px 0px";

export function DiffView({ diff, ticket, canSendBack }) {
  const [comments, setComments, sent] = useDraft(`comments.${ticket}`, [], { lasting: true });
  const [open, setOpen] = useState(null);
  const files = useMemo(() => parse(diff.text), [diff.text]);
  const save = (next) => setComments(next.length ? next : null);
  if (!files.length)
    return html`<${Empty}>${diff.live ? "Its agent has changed nothing yet." : "It changes nothing."}</${Empty}>`;
  const stale = comments.filter((one) => !files.some((file) => file.lines.some((line) => isOn(one, file, line))));
  const send = async () => {
    const done = await post(`/v1/tickets/${ticket}/bounce`, { feedback: comments.map(worded).join("\n") });
    sent(comments);
    return done;
  };
  const change = (place, text) => {
    save([...comments.filter((one) => !same(one, place)), ...(text ? [{ ...place, text }] : [])]);
    setOpen(null);
  };
  const all = sum(files, "size") <= MOST_DRAWN;
  const canComment = canSendBack && mayAct.value;
  const file = (one) => html`<${File} file=${one} key=${one.name} all=${all} open=${open} onOpen=${setOpen}
    comments=${comments} canComment=${canComment} onSave=${change} />`;
  const lost = (one) => html`<p class="comment" key=${one.file + one.side + one.line}>
    ${worded(one)} <span class="hint">This line is not in the change any more.</span> ${""}
    <button onClick=${() => change(one, "")}>Remove</button>
  </p>`;
  return html`<div class="diff">
    <p class="hint"><${Size} of=${files} />${asOf(diff)}. ${canComment && "Press a line's number to comment on it."}</p>
    <${Odd} in=${files.flatMap((one) => (one.folded ? one.odd : []))} where="A file that is folded" />
    ${
      comments.length > 0 &&
      canSendBack &&
      html`<div class="sendback">
        <b>${plural(comments.length, "comment")}</b>
        <${Act} keys="b" kind="primary" run=${send}>Send back with all comments</${Act}>
        <${Act} ask="Discard all comments?" run=${async () => save([])}>Discard</${Act}>
      </div>`
    }
    ${stale.map(lost)}${files.map(file)}
  </div>`;
}

function asOf({ live, as_of: at }) {
  if (!live) return "";
  return at
    ? ` as of ${new Date(at * 1000).toLocaleTimeString()}: its agent is at work on another machine`
    : " as of now: its agent is at work";
}

const Changed = ({ of }) => html`<span class="plus">+${of.added}</span> <span class="minus">−${of.removed}</span>`;
const Size = ({ of }) =>
  html`${plural(of.length, "file")}, <${Changed} of=${{ added: sum(of, "added"), removed: sum(of, "removed") }} />`;

// The first lines of a ticket's change, and a link to all.
export function Glance({ ticket }) {
  const { data } = useRead(`/v1/tickets/${ticket}/diff`, {}, (one) => one.ticket === ticket);
  const files = useMemo(() => parse(data?.text ?? ""), [data]);
  if (!files.length) return null;
  const first = files.flatMap((file) => file.lines.filter((line) => /added|removed/.test(line.kind))).slice(0, GLANCE);
  const line = (one, n) => html`<div key=${n} class="diff-line ${one.kind}">
    <span class="no">${one.before ?? ""}</span><span class="no">${one.now ?? ""}</span><code>${one.text || " "}</code>
  </div>`;
  return html`<div class="diff">
    <p><a href=${`#/ticket/${ticket}/diff`}>Read the change</a>: <${Size} of=${files} /></p>
    <${Odd} in=${files.flatMap((file) => file.odd)} where="This change" />
    <div class="lines" tabindex="0">${first.map(line)}</div>
  </div>`;
}

const sum = (files, field) => files.reduce((all, file) => all + file[field], 0);
const placeOf = (file, line) => ({
  file: file.name,
  side: line.kind === "removed" ? "-" : "+",
  line: line.now ?? line.before,
  quote: line.text,
});
const same = (one, other) =>
  one.file === other.file && one.side === other.side && one.line === other.line && one.quote === other.quote;
// A comment belongs to the line that it was written on: where another text is there now, it is on none.
const isOn = (one, file, line) =>
  line.kind !== "hunk" &&
  one.file === file.name &&
  one.line === (line.now ?? line.before) &&
  (one.side === "-") === (line.kind === "removed") &&
  one.quote === line.text;
const worded = ({ file, side, line, quote, text }) =>
  `${file}:${line}${side === "-" ? " (a removed line)" : ""}: ${text}\n    > ${quote}`;

function File({ file, comments, open, ...more }) {
  const [folded, setFolded] = useState(file.folded);
  const mine = comments.filter((one) => one.file === file.name);
  const pieces = useMemo(() => Array.from({ length: Math.ceil(file.size / PIECE) }, (_, n) => n * PIECE), [file]);
  const piece = (first) => html`<${Piece} key=${first} file=${file} lines=${file.lines.slice(first, first + PIECE)}
    comments=${mine} open=${open?.file === file.name ? open : null} ...${more} />`;
  return html`<section class="file">
    <h2>
      <button aria-expanded=${!folded} data-folds="" onClick=${() => setFolded(!folded)}>
        ${folded ? "▸" : "▾"} ${file.name}
      </button> ${""}
      <${Changed} of=${file} />
    </h2>
    <${Odd} in=${file.odd} where=${file.name} />
    ${!folded && html`<div class="lines" tabindex="0">${pieces.map(piece)}</div>`}
  </section>`;
}

// A hundred lines, in the document only while they are near what the person looks at, or have a comment.
function Piece({ file, lines, all, comments, open, ...more }) {
  const box = useRef(null);
  const [near, setNear] = useState(all);
  useEffect(() => {
    if (all) return undefined;
    const watch = new IntersectionObserver(([seen]) => setNear(seen.isIntersecting), { rootMargin: NEAR });
    watch.observe(box.current);
    return () => watch.disconnect();
  }, [all]);
  const drawn =
    near || lines.some((line) => comments.some((one) => isOn(one, file, line)) || (open && isOn(open, file, line)));
  const row = (line, n) => html`<${Line} key=${n} file=${file} line=${line} open=${open && isOn(open, file, line)}
    comment=${comments.find((one) => isOn(one, file, line))} ...${more} />`;
  const height = { minHeight: `${lines.length * LINE}px` };
  return html`<div class="piece" ref=${box} style=${height}>${drawn && lines.map(row)}</div>`;
}

function Line({ file, line, comment, open, onOpen, onSave, canComment }) {
  const place = placeOf(file, line);
  const closed = !canComment || line.kind === "hunk";
  const number = line.now ?? line.before;
  const press = () => onOpen(open ? null : place);
  // A click on the code selects the line, for the keys.
  const select = ({ target, currentTarget }) => {
    if (!target.closest("code") || !getSelection()?.isCollapsed) return;
    // A finger misses the number.
    if (!closed && matchMedia("(pointer: coarse)").matches) press();
    else currentTarget.querySelector(".no").focus();
  };
  return html`
    <div class="diff-line ${line.kind}" onClick=${select}>
      <button class="no" disabled=${closed} aria-expanded=${closed ? undefined : Boolean(open)} onClick=${press}
        aria-label=${`Comment on ${line.kind === "removed" ? "removed line" : "line"} ${number}`}>
        ${line.before ?? ""}
      </button>
      <button class="no" disabled=${closed} tabindex="-1" aria-hidden="true" onClick=${press}>${line.now ?? ""}</button>
      <code>
        ${line.marked ? html`${line.marked[0]}<mark>${line.marked[1]}</mark>${line.marked[2]}` : line.text || " "}
      </code>
    </div>
    ${comment && !open && html`<button class="comment" disabled=${closed} onClick=${press}>${comment.text}</button>`}
    ${open && html`<${Comment} place=${place} text=${comment?.text ?? ""} onSave=${(text) => onSave(place, text)} />`}
  `;
}

function Comment({ place, text, onSave }) {
  const [now, setNow] = useDraft(`${place.file} ${place.side}${place.line} ${place.quote}`, text);
  const leave = (kept) => {
    setNow(null);
    onSave(kept);
  };
  const close = () => leave(now.trim());
  const sends = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) close();
  };
  return html`<${Writing} className="comment" close=${close}>
    <textarea rows="3" aria-label="Comment" value=${now} onInput=${(event) => setNow(event.target.value)}
      onKeyDown=${sends}></textarea>
    <button class="primary" onClick=${close}>Keep</button><button onClick=${() => leave("")}>Remove</button>
  </${Writing}>`;
}
