// A terminal of the daemon in an element of the page: xterm.js, and the frames that travel over a WebSocket.
import { Terminal } from "../vendor/xterm.mjs";
import { FitAddon } from "../vendor/addon-fit.mjs";
import { openSocket } from "./api.js";

const RETRIES = [300, 1000, 2000, 5000];
// Codes of a closed WebSocket: the person left; the person looks at another part of the page.
const LEFT = 1000;
const AWAY = 4001;
const LOOK = {
  fontFamily: "ui-monospace, Menlo, Consolas, monospace",
  fontSize: 14,
  scrollback: 5000,
  theme: { background: "#11141a", foreground: "#e4e8ee", cursor: "#e4e8ee" },
};
const [KEYS, SIZE, DRAWN] = ["k", "s", "d"].map((kind) => kind.charCodeAt(0));
const [OUTPUT, END] = ["o", "e"].map((kind) => kind.charCodeAt(0));

// xterm.js writes its styles into the document, which the page's policy forbids. It may name the document that makes
// its elements: this one makes styles that the policy allows.
function strictDocument() {
  const createElement = (name) => {
    const element = document.createElement(name === "style" ? "data" : name);
    if (name === "style") adoptText(element);
    return element;
  };
  return new Proxy(document, {
    get(target, name) {
      if (name === "createElement") return createElement;
      const found = Reflect.get(target, name, target);
      return typeof found === "function" ? found.bind(target) : found;
    },
  });
}

// The text of this element becomes a style sheet, for as long as it is in the document.
function adoptText(element) {
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets.push(sheet);
  Object.defineProperty(element, "textContent", { set: (text) => sheet.replaceSync(text) });
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((other) => other !== sheet);
    Element.prototype.remove.call(element);
  };
}

export function loadStyle() {
  if (document.getElementById("terminal-style")) return Promise.resolve();
  return new Promise((resolve, reject) => {
    const link = Object.assign(document.createElement("link"), {
      id: "terminal-style",
      rel: "stylesheet",
      href: "/web/vendor/xterm.css",
      onload: resolve,
      onerror: reject,
    });
    document.head.append(link);
  });
}

// `wanted` is {ticket, kind, onlyLooks, run}. `report` gets {news, message, run, wheel} of the daemon, and "ended".
export function openTerminal(box, wanted, report) {
  const screen = new Terminal({
    ...LOOK,
    documentOverride: strictDocument(),
    disableStdin: wanted.onlyLooks,
    linkHandler: { activate() {} },
  });
  const fit = new FitAddon();
  screen.loadAddon(fit);
  screen.open(box);
  fit.fit();
  const bytes = new TextEncoder();
  let socket = /** @type {any} */ (null);
  let run = wanted.run ?? "";
  let failed = 0;
  let timer = 0;
  let over = false;
  let replaying = true;

  const send = (kind, data) => {
    if (socket?.readyState !== WebSocket.OPEN) return;
    const message = new Uint8Array(1 + data.length);
    message[0] = kind;
    message.set(data, 1);
    socket.send(message);
  };
  const number = (value, size) => Uint8Array.from({ length: size }, (_, at) => (value >>> (8 * (size - 1 - at))) & 255);
  const size = () => send(SIZE, Uint8Array.from([...number(screen.cols, 2), ...number(screen.rows, 2)]));
  const type = (text) => send(KEYS, bytes.encode(text));

  function connect() {
    const query = {
      kind: wanted.kind,
      only_looks: wanted.onlyLooks ? 1 : 0,
      columns: screen.cols,
      rows: screen.rows,
      run,
    };
    const mine = openSocket(`/ws/tickets/${wanted.ticket}/terminal`, query);
    socket = mine;
    mine.binaryType = "arraybuffer";
    mine.onmessage = ({ data }) => (typeof data === "string" ? notice(JSON.parse(data)) : frame(new Uint8Array(data)));
    mine.onclose = () => {
      if (mine === socket && !over) again();
    };
  }

  function again() {
    report({ news: "lost", message: "The connection is lost: trying again." });
    timer = setTimeout(connect, RETRIES[Math.min(failed, RETRIES.length - 1)]);
    failed += 1;
  }

  function notice(one) {
    if (one.news === "open") {
      run = one.run;
      failed = 0;
      replaying = true;
      screen.reset();
    }
    if (one.news === "refused" || one.news === "none") over = true;
    report(one);
  }

  function frame(data) {
    const content = data.subarray(1);
    if (data[0] === OUTPUT) {
      screen.write(content, () => {
        // What the screen answers to questions of old output was answered already.
        replaying = false;
        send(DRAWN, number(content.length, 4));
      });
    } else if (data[0] === END) {
      over = true;
      report({ news: "ended", message: JSON.parse(new TextDecoder().decode(content)).message });
    }
  }

  screen.onData((text) => {
    if (!replaying) type(text);
  });
  screen.onBinary((text) => {
    if (!replaying)
      send(
        KEYS,
        Uint8Array.from(text, (one) => one.charCodeAt(0)),
      );
  });
  screen.onResize(size);
  const watch = new ResizeObserver(() => fit.fit());
  watch.observe(box);
  connect();
  if (!wanted.onlyLooks) screen.focus();

  return {
    type: (text) => {
      type(text);
      screen.focus();
    },
    onLeaveKey: (leave) =>
      screen.attachCustomKeyEventHandler((event) => {
        const isQ = event.code === "KeyQ" || event.key.toLowerCase() === "q";
        if (event.type !== "keydown" || !isQ || !event.ctrlKey || event.altKey || event.shiftKey || event.metaKey)
          return true;
        event.preventDefault();
        leave();
        return false;
      }),
    // An agent that was interrupted works alone again: at once when the person left, else after a while.
    close(left) {
      over = true;
      clearTimeout(timer);
      watch.disconnect();
      socket?.close(left ? LEFT : AWAY);
      screen.dispose();
    },
  };
}
