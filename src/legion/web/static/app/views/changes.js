// A unified diff as files and lines, with what differs inside them marked. Nothing of it is trusted: all is text.
import { odd } from "../odd.js";

const MOST_OPEN = 2000; // Lines of files that are not folded.

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

export function parse(text) {
  const files = [];
  let file = /** @type {any} */ (null);
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
      else if (/^(Binary|rename|new file|deleted|similarity|old mode|new mode)/.test(line))
        file.lines.push({ kind: "hunk", text: line });
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
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail])
    tail += 1;
  if (head + tail < 3) return;
  old.marked = [a.slice(0, head), a.slice(head, a.length - tail), a.slice(a.length - tail)];
  fresh.marked = [b.slice(0, head), b.slice(head, b.length - tail), b.slice(b.length - tail)];
}
