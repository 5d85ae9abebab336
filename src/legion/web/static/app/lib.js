// The page's libraries under one name. All text goes into the document as text nodes: preact escapes what it renders.
import { h, render } from "../vendor/preact.mjs";
import htm from "../vendor/htm.mjs";

export { render };
export { useEffect, useMemo, useRef, useState } from "../vendor/hooks.mjs";
export { computed, signal } from "../vendor/signals.mjs";
export const html = htm.bind(h);
