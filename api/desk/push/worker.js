// The service worker: shows push messages, and opens the page of the one that is tapped. It fetches and stores nothing.
"use strict";

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("push", (event) => {
  const { title, body, path, tag, silent } = event.data.json();
  event.waitUntil(self.registration.showNotification(title, { body, tag, silent, renotify: !silent, data: { path } }));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data.path));
});

/** Open a page of the desk: in a window that is there, else in a new one. */
async function open(path) {
  const url = new URL(path, self.location.origin);
  if (url.origin !== self.location.origin || !url.pathname.startsWith("/inbox")) return;
  const windows = await self.clients.matchAll({ type: "window" });
  const there = windows.find((one) => one.url === url.href);
  if (there) await there.focus();
  else await self.clients.openWindow(url);
}
