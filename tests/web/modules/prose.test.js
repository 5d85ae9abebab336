// What agents write becomes text: no link, no picture, no element of their own.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Prose } from "../../../src/legion/web/static/app/prose.js";

// The tree as one line: every element by its name, every text as it is.
function drawn(node) {
  if (Array.isArray(node)) return node.map(drawn).join("");
  if (node === null || node === undefined || node === false) return "";
  if (typeof node !== "object") return String(node);
  const inside = drawn(node.props.children);
  return typeof node.type === "function" ? drawn(node.type(node.props)) : `<${node.type}>${inside}</${node.type}>`;
}
const prose = (text) => drawn(Prose({ text })).replace(/^<div>|<\/div>$/g, "");

test("paragraphs, heads and lists are blocks", () => {
  assert.equal(prose("# Head\none\ntwo\n\nthree"), "<p><b>Head</b></p><p>one\ntwo</p><p>three</p>");
  assert.equal(prose("- a\n  more\n- b\n\n3. c"), "<ul><li>a more</li><li>b</li></ul><ol><li>c</li></ol>");
});

test("code is code, and markup inside it is text", () => {
  assert.equal(prose("`a **b**` and **c**"), "<p><code>a **b**</code> and <b>c</b></p>");
  assert.equal(prose("```js\n# no head\n<b>\n```\nafter"), "<pre># no head\n<b></pre><p>after</p>");
});

test("nothing behind a fence is hidden but the name of a language", () => {
  assert.match(prose("``` rm -rf / # quiet\nx\n```"), /rm -rf \/ # quiet/);
});

test("no link and no picture is made", () => {
  const text = "[yes](https://example.test) ![x](y) <a href=z>";
  assert.equal(prose(text), `<p>${text}</p>`);
});
