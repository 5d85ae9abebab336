// What the page itself puts on the window, and an event of its own.
interface Window {
  early: Map<string, Promise<Response>>;
}
interface WindowEventMap {
  "legion-theme": CustomEvent<string>;
}
// JSON.parse gives null for it.
interface JSON {
  parse(text: string | null): any;
}
