// Notifications in this browser: turned on by a button, and bound to the next sign-in of the same person when a page opens.

import { load, one, say } from "./page.js";

const WORKER = "/inbox/worker.js";
const RENEWED = "assent-push-renewed";
const isPossible = "serviceWorker" in navigator && "PushManager" in window && "Notification" in window;
const worker = () => navigator.serviceWorker.getRegistration("/inbox/");

/** The only address that this policy of Trusted Types returns is the worker's. */
const address = () => window.trustedTypes?.createPolicy("assent-worker", { createScriptURL: () => WORKER }).createScriptURL("") ?? WORKER;

const fields = (subscription, more) =>
  new URLSearchParams({ csrf_token: one("input[name=csrf_token]").value, subscription: JSON.stringify(subscription), ...more });

/** Ask the person, subscribe, and tell the server. Throws an error for people. */
async function turnOn(form) {
  if (await Notification.requestPermission() !== "granted") throw new Error("This browser forbids notifications: allow them in its settings.");
  await navigator.serviceWorker.register(address(), { scope: "/inbox/" });
  const registration = await navigator.serviceWorker.ready.catch(worker) ?? await worker();
  const before = await registration.pushManager.getSubscription();
  if (before && !isOf(before, form.dataset.pushKey)) await before.unsubscribe();
  const options = { userVisibleOnly: true, applicationServerKey: form.dataset.pushKey };
  const subscription = await registration.pushManager.subscribe(options);
  const { status, page } = await load(form.action, fields(subscription));
  if (status >= 400) throw new Error(one("#refusal, [role=alert]", page)?.textContent ?? "The server refuses this.");
  location.assign("/inbox/channels");
}

/** Whether a subscription is for this installation's key. */
function isOf(subscription, key) {
  const bytes = new Uint8Array(subscription.options.applicationServerKey ?? []);
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "") === key;
}

/** Bind the subscription of this browser to the present sign-in. Once per window. */
async function renew() {
  if (!isPossible || Notification.permission !== "granted" || sessionStorage.getItem(RENEWED)) return;
  const subscription = await (await worker())?.pushManager.getSubscription();
  if (!subscription) return;
  sessionStorage.setItem(RENEWED, "yes");
  await load("/inbox/channels/push", fields(subscription, { renew: "yes" }));
}

for (const form of document.querySelectorAll("form[data-push-key]")) {
  form.hidden = false;
  const button = one("button", form);
  button.disabled = !isPossible;
  if (!isPossible) one(".problem", form).hidden = false;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    event.stopImmediatePropagation();
    button.disabled = true;
    turnOn(form).catch((error) => say(error.message)).finally(() => { button.disabled = false; });
  });
}
renew().catch(() => {}); // the next window tries again
