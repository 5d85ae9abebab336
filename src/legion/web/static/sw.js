// Keeps the page's own files for moments without a connection. No data is kept here; the page remembers the last board.
const NAME = "legion-%VERSION%";
const SHELL = [
  "/",
  "/web/app.css",
  "/web/app/early.js",
  "/web/app/first.js",
  "/web/icons/legion.svg",
  "/web/legion.webmanifest",
];

self.addEventListener("install", (event) =>
  event.waitUntil(
    caches
      .open(NAME)
      .then((cache) => cache.addAll(SHELL))
      .then(() => self.skipWaiting()),
  ),
);
self.addEventListener("activate", (event) =>
  event.waitUntil(
    caches
      .keys()
      .then((names) => Promise.all(names.filter((name) => name !== NAME).map((name) => caches.delete(name))))
      .then(() => self.clients.claim()),
  ),
);
self.addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  const ours =
    url.origin === location.origin &&
    event.request.method === "GET" &&
    (url.pathname === "/" || /^\/web\/.*\.(js|mjs|css|svg|png|webmanifest)$/.test(url.pathname));
  if (!ours) return;
  event.respondWith(
    fetch(event.request)
      .then((answer) => {
        if (answer.ok) {
          const copy = answer.clone();
          caches.open(NAME).then((cache) => cache.put(event.request, copy));
        }
        return answer;
      })
      .catch(() => caches.match(event.request)),
  );
});
self.addEventListener("push", (event) => {
  const message = event.data?.json() ?? {};
  event.waitUntil(
    self.registration.showNotification(message.title ?? "Legion", {
      body: message.text ?? "",
      data: message.link ?? "/",
      icon: "/web/icons/legion-180.png",
    }),
  );
});
self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const place = new URL(event.notification.data, location.origin).hash;
  event.waitUntil(
    self.clients.matchAll({ type: "window" }).then(async (pages) => {
      if (!pages.length) return self.clients.openWindow(`/${place}`);
      await pages[0].focus();
      return pages[0].navigate(`/${place}`);
    }),
  );
});
