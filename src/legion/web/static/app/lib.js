// The page's libraries under one name. All text goes into the document as text nodes: preact escapes what it renders.
import { createContext, h, options, render } from "../vendor/preact.mjs";
import htm from "../vendor/htm.mjs";
import { nameOf, odd, spelled, split } from "./odd.js";

export { createContext, render };
export { useContext, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/hooks.mjs";
export { computed, signal } from "../vendor/signals.mjs";
export const html = htm.bind(h);

const ONLY_TEXT = new Set(["option", "text", "title"]);
const SHOWN = ["title", "aria-label", "placeholder", "label", "alt"];
const before = options.vnode;

// Every text node and every shown attribute of the page passes here: no view can forget the marks.
options.vnode = (vnode) => {
  before?.(vnode);
  const { type, props } = vnode;
  if (type === null && typeof props === "string" && odd(props).length)
    Object.assign(vnode, { type: Marked, props: { text: props } });
  if (typeof type !== "string") return;
  for (const name of SHOWN) if (typeof props[name] === "string") props[name] = spelled(props[name]);
  if (ONLY_TEXT.has(type)) props.children = inText(props.children);
};

const inText = (child) =>
  Array.isArray(child) ? child.map(inText) : typeof child === "string" ? spelled(child) : child;
const Marked = ({ text }) =>
  split(text).map((part, n) => (n % 2 ? h("span", { class: "odd", title: nameOf(part) }, part) : part));
