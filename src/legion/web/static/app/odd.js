// Characters that are invisible, or that change the order of others: everywhere on the page they are visible marks, so
// that what a person reads is what a compiler reads.
// The first group is what only looks like one: an emoji, an Arabic or Indic word, a variant of a Chinese character.
const SEEN_OR_HIDDEN = new RegExp(String.raw`%HIDDEN%|\p{Cs}`, "gu"); // The daemon fills in the rule of all faces.
const PLAIN = /^[\x20-\x7e\n\t]*$/;
const NAMES = {
  "U+200B": "zero width space",
  "U+200C": "zero width non-joiner",
  "U+200D": "zero width joiner",
  "U+00AD": "soft hyphen",
  "U+200E": "left-to-right mark",
  "U+200F": "right-to-left mark",
  "U+202A": "left-to-right embedding",
  "U+202B": "right-to-left embedding",
  "U+202C": "end of direction",
  "U+202D": "left-to-right override",
  "U+202E": "right-to-left override",
  "U+2066": "left-to-right isolate",
  "U+2067": "right-to-left isolate",
  "U+2068": "first strong isolate",
  "U+2069": "end of isolate",
  "U+FEFF": "byte order mark",
  "U+001B": "escape",
};

const codeOf = (one) => `U+${one.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
export const nameOf = (code) => NAMES[code] ?? "a character that is not shown";
const hidden = (text) =>
  PLAIN.test(text) ? [] : [...text.matchAll(SEEN_OR_HIDDEN)].filter((found) => found[1] === undefined);
// The codes of a text's odd characters.
export const odd = (text) => hidden(text).map(([one]) => codeOf(one));

// The text as strings and codes by turns: every second one is a code.
export function split(text) {
  const parts = [];
  let at = 0;
  for (const found of hidden(text)) {
    parts.push(text.slice(at, found.index), codeOf(found[0]));
    at = found.index + found[0].length;
  }
  return [...parts, text.slice(at)];
}

// The text with codes in their place, where there can be nothing but text.
export const spelled = (text) =>
  split(text)
    .map((part, n) => (n % 2 ? `[${part}]` : part))
    .join("");
