// Times, amounts and names as people read them.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ago,
  amount,
  bytes,
  dollars,
  duration,
  lastLines,
  plain,
  plural,
  stateClass,
  until,
} from "../../../src/legion/web/static/app/format.js";

test("a time is one or two units, and never negative", () => {
  const at = (seconds) => ago(1000, 1000 + seconds);
  assert.deepEqual([at(0), at(59.9), at(60), at(3599)], ["0 s", "59 s", "1 min", "59 min"]);
  assert.deepEqual(
    [at(3600), at(5400), at(86_399), at(86_400), at(200_000)],
    ["1 h 0 min", "1 h 30 min", "23 h 59 min", "1 d", "2 d"],
  );
  assert.equal(at(-5), "0 s");
  assert.equal(duration(90), "1 min");
});

test("what is due is now", () => {
  assert.equal(until(Date.now() / 1000 - 1), "now");
  assert.equal(until(Date.now() / 1000 + 120.5), "2 min");
});

test("an amount has at most one decimal", () => {
  assert.deepEqual([0, 999, 1000, 9999, 10_000, 999_999, 1_234_567].map(amount), [
    "0",
    "999",
    "1.0 k",
    "10.0 k",
    "10 k",
    "1000 k",
    "1.2 M",
  ]);
  assert.deepEqual([0, 999, 1000, 1_500_000, 2e15].map(bytes), ["0 B", "999 B", "1.0 KB", "1.5 MB", "2000.0 TB"]);
});

test("money that is not known is not shown", () => {
  assert.deepEqual([null, undefined, 0, 9.999, 10, 1234.5].map(dollars), ["", "", "$0.00", "$10.00", "$10.0", "$1235"]);
});

test("a count has its noun", () => {
  assert.deepEqual(
    [plural(0, "line"), plural(1, "line"), plural(2, "entry", "entries")],
    ["0 lines", "1 line", "2 entries"],
  );
});

test("a state that is not known is quiet, and no other class", () => {
  assert.deepEqual(["done", "failed", 'x" onclick="'].map(stateClass), ["good", "bad", "quiet"]);
});

test("what drives a terminal leaves the text", () => {
  assert.equal(plain("\x1b[31mred\x1b[0m \x1b]0;title\x07\x1b]8;;x\x1b\\link\r\n\ttab\x00"), "red link\n\ttab");
  assert.equal(lastLines("a\nb\nc\n\n", 2), "b\nc");
  assert.equal(lastLines(undefined, 2), "");
});
