// A unified diff as files and lines; nothing of it is trusted.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "../../../src/legion/web/static/app/views/changes.js";

const HEAD = "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n";

test("lines have their numbers on both sides", () => {
  const [file] = parse(`${HEAD}@@ -3,3 +7,3 @@ def f\n same\n-old\n+new\n same\n`);
  assert.deepEqual(
    file.lines.map(({ kind, before, now }) => [kind, before, now]),
    [
      ["hunk", undefined, undefined],
      ["same", 3, 7],
      ["removed", 4, undefined],
      ["added", undefined, 8],
      ["same", 5, 9],
    ],
  );
  assert.deepEqual([file.name, file.added, file.removed], ["x.py", 1, 1]);
});

test("what differs inside a pair of lines is marked", () => {
  const [file] = parse(`${HEAD}@@ -1 +1 @@\n-total = 1\n+total = 22\n`);
  assert.deepEqual(
    file.lines.filter((one) => one.marked).map((one) => one.marked),
    [
      ["total = ", "1", ""],
      ["total = ", "22", ""],
    ],
  );
});

test("lines that only look like heads are lines", () => {
  const [file, ...others] = parse(`${HEAD}@@ -1,2 +1,2 @@\n--- a/y\n+++ b/y\n`);
  assert.deepEqual(others, []);
  assert.deepEqual(
    file.lines.slice(1).map((one) => one.text),
    ["-- a/y", "++ b/y"],
  );
});

test("git's escapes in a name are read as bytes", () => {
  const [file] = parse('diff --git "a/gr\\303\\274n \\"1\\".md" "b/gr\\303\\274n \\"1\\".md"\nnew file mode 100644\n');
  assert.equal(file.name, 'grün "1".md');
});

test("a file behind two thousand lines is folded", () => {
  const lines = "+x\n".repeat(1500);
  const files = parse(`${HEAD}@@ -0,0 +1,1500 @@\n${lines}${HEAD}@@ -0,0 +1,1500 @@\n${lines}`);
  assert.deepEqual(
    files.map((one) => one.folded),
    [false, true],
  );
});
