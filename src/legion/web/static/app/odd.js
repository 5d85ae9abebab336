// Characters that are invisible, or that change the order of others: everywhere on the page they are visible marks, so
// that what a person reads is what a compiler reads.
const HIDDEN = "[\\p{Cc}\\p{Cf}\\p{Cs}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}]";
const JOINED = "[\\u0600-\\u08ff\\u0900-\\u0dff\\u1780-\\u17ff\\u1820-\\u18af\\ufb50-\\ufdff\\ufe70-\\ufefc]";
// Tabs, ends of lines, and what belongs to an emoji, an Arabic or Indic word, or a variant of a Chinese character.
const USUAL = "[\\t\\n]|\\r(?=\\n|$)|(?<=\\p{Extended_Pictographic})\\uFE0F|"
  + "(?<=[\\p{Extended_Pictographic}\\uFE0F\\p{Emoji_Modifier}])\\u200D(?=\\p{Extended_Pictographic})|"
  + `(?<=${JOINED})[\\u200c\\u200d](?=${JOINED})|(?<=\\p{sc=Han})[\\ufe00-\\ufe02\\u{e0100}-\\u{e01ef}]`;
const ODD = new RegExp(`(?!${USUAL})${HIDDEN}`, "gu");
const NAMES = {
  "U+200B": "zero width space", "U+200C": "zero width non-joiner", "U+200D": "zero width joiner", "U+00AD": "soft hyphen",
  "U+200E": "left-to-right mark", "U+200F": "right-to-left mark", "U+202A": "left-to-right embedding",
  "U+202B": "right-to-left embedding", "U+202C": "end of direction", "U+202D": "left-to-right override",
  "U+202E": "right-to-left override", "U+2066": "left-to-right isolate", "U+2067": "right-to-left isolate",
  "U+2068": "first strong isolate", "U+2069": "end of isolate", "U+FEFF": "byte order mark", "U+001B": "escape",
};

const codeOf = (one) => `U+${one.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
export const nameOf = (code) => NAMES[code] ?? "a character that is not shown";
// The codes of a text's odd characters.
export const odd = (text) => (text.match(ODD) ?? []).map(codeOf);
// The text with codes in their place, where there can be nothing but text.
export const spelled = (text) => text.replace(ODD, (one) => `[${codeOf(one)}]`);

// The text as strings and codes by turns: every second one is a code.
export function split(text) {
  const parts = [];
  let at = 0;
  for (const found of text.matchAll(ODD)) {
    parts.push(text.slice(at, found.index), codeOf(found[0]));
    at = found.index + found[0].length;
  }
  return [...parts, text.slice(at)];
}
